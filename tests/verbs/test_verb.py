"""Declarations of verbs: what requests they derive from a signature."""

import inspect
from datetime import timedelta
from types import SimpleNamespace
from typing import Annotated, TypedDict, Unpack

import msgspec
import pytest

from rota.api.operations.verb_operation import routes_of
from rota.client.limits.quotas import QuotasClient
from rota.client.parts import all_verbs
from rota.core.access.roles import Role
from rota.errors import Invalid
from rota.values.scope import Scope
from rota.verbs.glossary import GLOSSARY
from rota.verbs.pages import Page, cursor_at, place_of
from rota.verbs.parameters import Place, given, request_of
from rota.verbs.spread import dotted
from rota.verbs.verb import Declared, verb, verbs_of
from rota.verbs.wire import Body, answer_field

VERBS = all_verbs()


def declared_as(function: object, **facts: object) -> Declared:
    kind = type("Part", (), {"act": verb("POST", "/things/{id}/act", Role.OPERATOR, **facts)(function)})  # type: ignore[type-var]
    *_, declared = verbs_of(kind, "things")
    return declared


async def act(
    self: object,
    id_or_name: str,
    *,
    reason: str | None = None,
    owner: str = "api",
    actor: str = "",
    idempotency_key: str,
    expected_revision: int | None = None,
) -> None:
    """Act on a thing. It then has been acted on.

    A second paragraph.
    """


def test_parameters_have_their_places() -> None:
    request = request_of(declared_as(act, query=("owner",)))
    assert {name: parameter.place for name, parameter in request.parameters.items()} == {
        "id_or_name": Place.PATH,
        "reason": Place.BODY,
        "owner": Place.QUERY,
        "actor": Place.ACTOR,
        "idempotency_key": Place.KEY,
        "expected_revision": Place.CONDITION,
    }
    assert request.body is not None
    assert msgspec.convert({}, request.body) == request.body()
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"reasons": "typo"}, request.body)


def test_a_verb_may_say_what_its_whole_body_is() -> None:
    form = Body(dict[str, str], lambda own, path: {**own, **path}, lambda body, path: {**body, **path})
    assert request_of(declared_as(act, body=form)).body == dict[str, str]


def test_a_path_takes_a_name_once() -> None:
    async def record(self: object, run_id: str, id: str) -> None:
        """Record a step of a run."""

    places = {name: parameter.place for name, parameter in request_of(declared_as(record)).parameters.items()}
    assert places == {"run_id": Place.PATH, "id": Place.BODY}


def test_a_path_names_only_parameters() -> None:
    async def vanish(self: object, name: str) -> None:
        """Vanish."""

    with pytest.raises(TypeError, match=r"the path /things/\{id\}/act of .*vanish names 'id', which is no parameter"):
        request_of(declared_as(vanish))


def test_a_route_is_declared_once() -> None:
    class Twins:
        @verb("GET", "/twins", Role.VIEWER)
        async def first(self) -> None:
            """Return the first."""

        @verb("GET", "/twins", Role.VIEWER)
        async def second(self) -> None:
            """Return the second."""

    with pytest.raises(TypeError, match=r"GET /twins is declared twice, once by .*second"):
        routes_of(Twins, "twins")


def test_no_two_verbs_have_one_route() -> None:
    routes = [(declared.verb.method, declared.verb.path) for declared in VERBS]
    assert [route for route in routes if routes.count(route) > 1] == []


def test_the_docstring_is_the_documentation() -> None:
    declared = declared_as(act)
    assert declared.summary == "Act on a thing."
    assert declared.description == "It then has been acted on.\n\nA second paragraph."


def test_options_without_types_are_refused() -> None:
    async def loose(self: object, id_or_name: str, **options: object) -> None:
        """Take anything."""

    with pytest.raises(TypeError, match="have no types"):
        request_of(declared_as(loose))


class Options(TypedDict, total=False):
    colour: str


class NewOptions(Options):
    size: int


def test_options_are_required_optional_or_absent() -> None:
    async def make(self: object, id_or_name: str, **options: Unpack[NewOptions]) -> None:
        """Make a thing."""

    request = request_of(declared_as(make))
    assert request.body is not None
    assert given(msgspec.convert({"size": 1}, request.body)) == {"size": 1}
    assert given(msgspec.convert({"size": 1, "colour": None}, request.body)) == {"size": 1, "colour": None}
    with pytest.raises(msgspec.ValidationError, match="missing required field `size`"):
        msgspec.convert({}, request.body)


def test_an_actor_in_the_query_is_a_filter() -> None:
    assert request_of(declared_as(act, query=("actor",))).parameters["actor"].place is Place.QUERY


def test_a_bare_value_is_answered_in_a_field() -> None:
    form = answer_field("every", timedelta, "Every", "Time between two")
    assert form.encode(timedelta(minutes=1)) == {"every": timedelta(minutes=1)}
    assert form.decode({"every": "1m"}) == timedelta(minutes=1)
    with pytest.raises(KeyError):
        form.decode({})


def test_two_routes_to_one_method_share_their_body() -> None:
    bodies = {request_of(declared).body for declared in verbs_of(QuotasClient) if declared.name == "update"}
    assert len(bodies) == 1


@pytest.mark.parametrize("declared", VERBS, ids=lambda declared: f"{declared.operation}")
def test_every_field_of_a_verb_is_described(declared: Declared) -> None:
    request = request_of(declared)
    _, components = msgspec.json.schema_components([shape for shape in (request.query, request.body) if shape])
    shapes = [components[shape.__name__] for shape in (request.query, request.body) if shape]
    fields = [(name, str(field)) for shape in shapes for name, field in shape["properties"].items()]
    bare = [name for name, field in fields if "description" not in field and name not in GLOSSARY]
    assert bare == []
    assert declared.summary.endswith(".")


def test_names_of_operations_are_unique() -> None:
    names = [declared.operation for declared in VERBS]
    assert len(set(names)) == len(names)


def test_a_list_is_cut_into_pages() -> None:
    paging: Page[str] = Page(lambda text: text)
    first, cursor = paging.cut(["c", "a", "b"], 2, None)
    assert first == ["a", "b"]
    assert cursor is not None
    assert place_of(cursor) == "b"
    assert paging.cut(["c", "a", "b"], 2, cursor) == (["c"], None)
    assert paging.cut(["c", "a"], 2, None) == (["a", "c"], None)


def test_a_cursor_of_another_list_is_refused() -> None:
    paging: Page[str] = Page(lambda text: text)
    for cursor in (cursor_at(7), cursor_at(["a", 1]), "x", ""):
        with pytest.raises(Invalid, match="is invalid"):
            paging.cut(["a", "b"], 1, cursor)
    with pytest.raises(Invalid, match="is invalid"):
        place_of(cursor_at("seven"), int | None)


class _Chosen(msgspec.Struct, frozen=True, kw_only=True):
    names: Annotated[tuple[str, ...], msgspec.Meta(description="Names")] = msgspec.field(default=(), name="name")
    scope: Annotated[Scope | None, msgspec.Meta(description="Scope")] = None
    facts: Annotated[dict[str, int], msgspec.Meta(description="Facts")] = {}


async def choose(self: object, chosen: _Chosen | None = None, *, scope_of_caller: Scope | None = None) -> None:
    """Choose things."""


def test_the_fields_of_a_filter_are_query_parameters() -> None:
    kind = type("Part", (), {"choose": verb("GET", "/things", Role.VIEWER)(choose)})
    request = request_of(verbs_of(kind, "things")[0])
    assert request.query is not None
    assert request.query.__struct_encode_fields__ == ("name", "scope", "facts", "scope_of_caller")
    parameter = request.parameters["chosen"]
    chosen = _Chosen(names=("a", "b"), scope=Scope("account", "4/2"), facts={"depth": 2})
    written = parameter.written(chosen)
    assert dotted(written) == {"name": ["a", "b"], "scope": "account/4/2", "facts.depth": 2}
    query = msgspec.convert(written, request.query)
    assert parameter.read(given(query)) == {"chosen": chosen}
    assert parameter.written(_Chosen()) == parameter.written(None) == {}


def test_a_list_without_a_key_is_cut_by_position() -> None:
    paging: Page[str] = Page()
    first, cursor = paging.cut(["c", "a", "b"], 2, None)
    assert (first, paging.cut(["c", "a", "b"], 2, cursor)) == (["c", "a"], (["b"], None))
    for place in ("c", True, -1):
        with pytest.raises(Invalid, match="is invalid"):
            paging.cut(["c"], 2, cursor_at(place))


@pytest.mark.parametrize("name", ["children", "replicas"])
def test_a_list_that_may_lose_rows_is_cut_by_their_ids(name: str) -> None:
    (paging,) = [declared.verb.page for declared in VERBS if declared.name == name]
    assert paging is not None
    runs = [SimpleNamespace(id=letter, run_id=letter) for letter in "abcd"]
    _, cursor = paging.cut(runs, 2, None)
    assert paging.cut(runs[1:], 2, cursor) == (runs[2:], None)


def test_verbs_stay_ordinary_methods() -> None:
    assert inspect.iscoroutinefunction(QuotasClient.update)
