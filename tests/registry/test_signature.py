from __future__ import annotations

import enum
import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadPayload, Invalid
from rota.registry.signature import PayloadType, check_schema
from rota.values.json import Limits

LIMITS = Limits()


class Context: ...


class Stranger: ...


class Colour(enum.Enum):
    RED = "red"


@dataclass
class User:
    name: str
    age: int = 0


class Address(msgspec.Struct, forbid_unknown_fields=True):
    city: str


def of(fn: Callable[..., object]) -> PayloadType:
    return PayloadType.of(fn, Context)


def crawl(ctx: Context, url: str, n: int = 3) -> None: ...


def nothing() -> None: ...


def anything(**rest: Any) -> None: ...


def counts(ctx: Context, label: str = "", **counts: int) -> None: ...


def shapes(user: User, address: Address, tags: set[str], extra: dict[str, object]) -> None: ...


def typed(
    *,
    at: datetime,
    span: timedelta,
    price: Decimal,
    run: UUID,
    colour: Colour,
    by_number: dict[int, str],
    pair: tuple[int, str],
    data: bytes,
    user: User | None = None,
) -> None: ...


def keyword_only(*, first: int, second: int = 2) -> None: ...


def awkward(_hidden: int, __very: int, self: int, p1: str, copy: str = "") -> None: ...


CRAWL = of(crawl)


def refusal(act: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(BadPayload) as refused:
        act()
    return refused.value.path, refused.value.problem


class TestContext:
    def test_is_known_by_annotation(self) -> None:
        assert CRAWL.wants_context == "ctx"

    def test_is_known_by_name_when_nothing_is_annotated(self) -> None:
        assert of(lambda ctx, url: None).wants_context == "ctx"

    def test_may_have_any_name(self) -> None:
        def handler(url: str, the_run: Context) -> None: ...

        payload = of(handler)
        assert payload.wants_context == "the_run"
        assert payload.bind(("https://a",), {}) == {"url": "https://a"}

    @pytest.mark.parametrize("annotation", ["Context", "rota.Context", Context])
    def test_is_known_when_imported_for_type_checkers_only(self, annotation: object) -> None:
        def handler(given: object, n: int) -> None: ...

        handler.__annotations__["given"] = annotation
        assert of(handler).wants_context == "given"

    def test_is_not_any_parameter_called_ctx(self) -> None:
        def handler(ctx: int) -> None: ...

        assert of(handler).wants_context is None

    def test_is_wanted_once(self) -> None:
        def handler(a: Context, b: Context) -> None: ...

        with pytest.raises(Invalid, match="a, b all want the context"):
            of(handler)


class TestDeclaration:
    def test_refuses_star_args(self) -> None:
        with pytest.raises(Invalid, match=r"\*urls has no names"):
            of(lambda *urls: None)

    def test_refuses_positional_only(self) -> None:
        with pytest.raises(Invalid, match="'url' is positional-only"):
            of(lambda url, /: None)

    @pytest.mark.parametrize(
        "annotation", [Stranger, list[Stranger], int | Stranger, Context | None, Callable[[], int], User | Address, 3]
    )
    def test_refuses_what_json_cannot_give(self, annotation: object) -> None:
        def handler(good: int, bad: object) -> None: ...

        handler.__annotations__["bad"] = annotation
        with pytest.raises(Invalid, match=r"parameter 'bad': .* cannot be read from JSON"):
            of(handler)

    def test_refuses_what_cannot_be_resolved(self) -> None:
        def handler(bad: object) -> None: ...

        handler.__annotations__["bad"] = "Missing"
        with pytest.raises(Invalid, match="'Missing' of parameter 'bad' cannot be resolved"):
            of(handler)

    def test_refuses_what_has_no_signature(self) -> None:
        with pytest.raises(Invalid, match="has no signature"):
            of(type)

    def test_takes_methods_partials_and_callable_objects(self) -> None:
        class Handler:
            def __call__(self, user: User) -> None: ...

            def method(self, user: User) -> None: ...

        for fn in (Handler(), Handler().method, partial(shapes, address=Address("Rome"))):
            assert "user" in str(of(fn).schema()["properties"])


class TestBind:
    @pytest.mark.parametrize(
        ("fn", "args", "kwargs", "payload"),
        [
            (crawl, ("a",), {}, {"url": "a"}),
            (crawl, ("a", 4), {}, {"url": "a", "n": 4}),
            (crawl, ("a",), {"n": 4}, {"url": "a", "n": 4}),
            (crawl, (), {"n": 4, "url": "a"}, {"n": 4, "url": "a"}),
            (nothing, (), {}, {}),
            (anything, (), {"a": 1}, {"a": 1}),
            (keyword_only, (), {"first": 1}, {"first": 1}),
        ],
    )
    def test_is_like_calling(
        self, fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object], payload: dict[str, object]
    ) -> None:
        assert of(fn).bind(args, kwargs) == payload

    @pytest.mark.parametrize(
        ("fn", "args", "kwargs", "path", "problem"),
        [
            (crawl, (), {}, "$.url", "is missing"),
            (crawl, ("a", 1, 2), {}, "$", "takes 2 positional arguments, 3 were given"),
            (crawl, ("a",), {"url": "b"}, "$.url", "is given twice"),
            (crawl, ("a",), {"uri": "b"}, "$.uri", "is unexpected"),
            (crawl, ("a",), {"ctx": 1}, "$.ctx", "is unexpected"),
            (counts, (), {"ctx": 1}, "$.ctx", "is unexpected"),
            (keyword_only, (1,), {}, "$", "takes 0 positional arguments, 1 were given"),
        ],
    )
    def test_says_what_is_wrong_with_a_call(
        self,
        fn: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
        path: str,
        problem: str,
    ) -> None:
        assert refusal(lambda: of(fn).bind(args, kwargs)) == (path, problem)

    def test_guesses_what_was_meant(self) -> None:
        with pytest.raises(BadPayload, match="did you mean 'url'"):
            CRAWL.bind((), {"urll": "a"})

    @given(st.lists(st.integers(), max_size=4), st.dictionaries(st.sampled_from("abcz"), st.integers()))
    def test_agrees_with_python(self, args: list[int], kwargs: dict[str, int]) -> None:
        def handler(a: int, b: int = 0, *, c: int = 0) -> None: ...

        try:
            expected = inspect.signature(handler).bind(*args, **kwargs).arguments
        except TypeError:
            refusal(lambda: of(handler).bind(tuple(args), kwargs))
        else:
            assert of(handler).bind(tuple(args), kwargs) == expected


class TestEncode:
    def test_stores_no_defaults(self) -> None:
        assert CRAWL.encode({"url": "a"}, LIMITS) == '{"url":"a"}'
        assert CRAWL.arguments('{"url":"a"}') == {"url": "a"}

    @pytest.mark.parametrize(
        ("fn", "arguments", "path", "problem"),
        [
            (crawl, {"url": 1}, "$.url", "expected `str`, got `int`"),
            (crawl, {"url": "a", "n": "3"}, "$.n", "expected `int`, got `str`"),
            (crawl, {"url": "a", "n": None}, "$.n", "expected `int`, got `null`"),
            (crawl, {"url": "a", "n": float("nan")}, "$.n", "JSON has no number nan"),
            (crawl, {"url": "a\0"}, "$.url", "contains a NUL character"),
            (crawl, {"url": Stranger()}, "$.url", "type Stranger cannot be stored as JSON"),
            (crawl, {}, "$.url", "is missing"),
            (crawl, {"url": "a", "uri": 1}, "$.uri", "is unexpected"),
            (counts, {"a": 1, "b": "2"}, "$.b", "expected `int`, got `str`"),
            (shapes, {"user": {"name": "a", "age": "b"}}, "$.user.age", "expected `int`, got `str`"),
            (shapes, {"user": {}}, "$.user.name", "is missing"),
            (shapes, {"user": User("a"), "address": {"city": "a", "zip": 1}}, "$.address.zip", "is unexpected"),
        ],
    )
    def test_names_the_field_at_fault(
        self, fn: Callable[..., object], arguments: dict[str, object], path: str, problem: str
    ) -> None:
        assert refusal(lambda: of(fn).encode(arguments, LIMITS)) == (path, problem)

    def test_keeps_to_the_limits(self) -> None:
        assert refusal(lambda: CRAWL.encode({"url": "a" * 300_000}, LIMITS))[0] == "$"

    def test_keeps_numbers_exact(self) -> None:
        assert CRAWL.arguments(CRAWL.encode({"url": "", "n": 10**100 + 1}, LIMITS))["n"] == 10**100 + 1

    @given(
        st.fixed_dictionaries(
            {
                "at": st.datetimes(timezones=st.just(UTC)),
                "span": st.timedeltas(timedelta(days=-9_000), timedelta(days=9_000)),
                "price": st.decimals(allow_nan=False, allow_infinity=False),
                "run": st.uuids(),
                "colour": st.just(Colour.RED),
                "by_number": st.dictionaries(st.integers(), st.just("x"), max_size=3),
                "pair": st.tuples(st.integers(), st.just("x")),
                "data": st.binary(),
            },
            optional={"user": st.none() | st.builds(User, st.just("a"), st.integers())},
        )
    )
    def test_what_is_stored_comes_back_with_its_types(self, arguments: dict[str, object]) -> None:
        payload = of(typed)
        text = payload.encode(arguments, LIMITS)
        assert payload.arguments(text) == arguments
        check_schema(payload.schema(), text, LIMITS)

    @given(st.dictionaries(st.text("abc_ é", min_size=1), st.integers() | st.booleans() | st.none() | st.text("ab")))
    def test_open_payloads_come_back(self, arguments: dict[str, object]) -> None:
        payload = of(anything)
        assert payload.arguments(payload.encode(arguments, LIMITS)) == arguments


class TestArguments:
    @pytest.mark.parametrize("text", ["{}", b"{}", " { } "])
    def test_nothing_needs_nothing(self, text: str | bytes) -> None:
        assert of(nothing).arguments(text) == {}
        assert of(anything).arguments(text) == {}
        assert refusal(lambda: CRAWL.arguments(text)) == ("$.url", "is missing")

    def test_builds_what_the_handler_expects(self) -> None:
        text = '{"user":{"name":"Ada","age":36},"address":{"city":"Rome"},"tags":["a"],"extra":{"k":[1]}}'
        expected = {"user": User("Ada", 36), "address": Address("Rome"), "tags": {"a"}, "extra": {"k": [1]}}
        assert of(shapes).arguments(text) == expected

    def test_unannotated_parameters_take_any_json(self) -> None:
        payload = of(lambda x, y=1: None)
        for text in ('{"x":null}', '{"x":[1,{"a":2}],"y":"z"}'):
            assert payload.arguments(text) == msgspec.json.decode(text)

    def test_parameter_names_need_not_suit_a_struct(self) -> None:
        arguments: dict[str, object] = {"_hidden": 1, "__very": 2, "self": 3, "p1": "x"}
        payload = of(awkward)
        assert payload.arguments(payload.encode(arguments, LIMITS)) == arguments
        assert refusal(lambda: payload.encode({**arguments, "__very": "x"}, LIMITS))[0] == "$.__very"

    def test_kwargs_never_hide_the_context(self) -> None:
        assert of(counts).arguments('{"label":"l","a":1}') == {"label": "l", "a": 1}
        assert refusal(lambda: of(counts).arguments('{"ctx":1}')) == ("$.ctx", "is unexpected")

    @pytest.mark.parametrize("text", ["[]", "null", "{", "", b"\xff", '"\ud800"', '{"x":' + "[" * 50_000])
    @pytest.mark.parametrize("fn", [nothing, anything, crawl, lambda x: None])
    def test_broken_text_is_refused(self, fn: Callable[..., object], text: str | bytes) -> None:
        refusal(lambda: of(fn).arguments(text))


class TestCheck:
    @pytest.mark.parametrize(
        ("text", "path", "problem"),
        [
            ('{"url":"a","urll":"b"}', "$.urll", "is unexpected"),
            ('{"url":1}', "$.url", "expected `str`, got `int`"),
            ("[]", "$", "expected `object`, got `array`"),
        ],
    )
    def test_refuses_what_the_handler_would(self, text: str, path: str, problem: str) -> None:
        assert refusal(lambda: CRAWL.arguments(text)) == (path, problem)

    def test_accepts_what_fits(self) -> None:
        assert CRAWL.arguments(b'{"url":"a","n":1}') == {"url": "a", "n": 1}

    def test_quotes_no_more_than_a_little(self) -> None:
        def paint(colour: Colour) -> None: ...

        with pytest.raises(BadPayload) as refused:
            of(paint).arguments('{"colour":"' + "x" * 10_000 + '"}')
        assert len(str(refused.value)) < 400


class TestSchema:
    def test_describes_the_payload(self) -> None:
        assert CRAWL.schema() == {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"url": {"type": "string"}, "n": {"type": "integer"}},
            "required": ["url"],
            "additionalProperties": False,
        }

    def test_defines_what_it_refers_to(self) -> None:
        schema = of(shapes).schema()
        assert isinstance(schema["$defs"], dict)
        assert set(schema["$defs"]) == {"User", "Address"}

    def test_kwargs_leave_it_open(self) -> None:
        assert of(anything).schema()["additionalProperties"] is True
        assert of(counts).schema()["additionalProperties"] == {"type": "integer"}

    def test_carries_constraints(self) -> None:
        def handler(n: Annotated[int, msgspec.Meta(ge=1)]) -> None: ...

        assert of(handler).schema()["properties"] == {"n": {"type": "integer", "minimum": 1}}
        assert refusal(lambda: of(handler).encode({"n": 0}, LIMITS)) == ("$.n", "expected `int` >= 1")

    @pytest.mark.parametrize(
        ("fn", "text", "path"),
        [
            (crawl, "{}", "$.url"),
            (crawl, '{"url":1}', "$.url"),
            (crawl, '{"url":"a","urll":1}', "$.urll"),
            (crawl, "[]", "$"),
            (counts, '{"a":"b"}', "$.a"),
            (counts, '{"ctx":1}', "$.ctx"),
            (shapes, '{"user":{},"address":{"city":"a"},"tags":[],"extra":{}}', "$.user.name"),
            (shapes, '{"user":{"name":"a"},"address":{"city":"a"},"tags":["a",1],"extra":{}}', "$.tags[1]"),
        ],
    )
    def test_refuses_like_the_function(self, fn: Callable[..., object], text: str, path: str) -> None:
        payload = of(fn)
        assert refusal(lambda: payload.arguments(text))[0] == path
        assert refusal(lambda: check_schema(payload.schema(), text, LIMITS))[0] == path

    def test_refuses_what_cannot_be_stored(self) -> None:
        assert refusal(lambda: check_schema(CRAWL.schema(), '{"url":"\\u0000"}', LIMITS))[0] == "$.url"

    def test_accepts_numbers_of_any_size(self) -> None:
        check_schema(CRAWL.schema(), f'{{"url":"a","n":{10**100}}}', LIMITS)

    @pytest.mark.parametrize(
        "schema", [{"type": "banana"}, {"$ref": "http://localhost/x"}, {"$ref": "file:///etc/hostname"}]
    )
    def test_that_is_no_schema_is_refused_and_fetches_nothing(self, schema: dict[str, object]) -> None:
        with pytest.raises(Invalid, match="not a JSON Schema"):
            check_schema(schema, "{}", LIMITS)

    def test_of_a_hostile_payload_is_not_quoted(self) -> None:
        with pytest.raises(BadPayload) as refused:
            check_schema({"properties": {"a": {"type": "integer"}}}, '{"a":"' + "x" * 10_000 + '"}', LIMITS)
        assert len(str(refused.value)) < 200

    def test_a_worker_does_not_load_the_validator(self) -> None:
        code = "import sys, rota.registry.signature; sys.exit('jsonschema_rs' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
