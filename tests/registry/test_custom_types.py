"""Test types of payloads and results: each is stored, read back the same, checked, and described by a JSON Schema."""

import dataclasses
import enum
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple, TypedDict

import annotated_types
import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from rota import BadPayload, Context, Invalid, Rota
from rota.registry.signature import PayloadType, check_schema
from rota.testing import drain, inline
from rota.values import json
from rota.values.json import Limits


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@attrs.define
class Box:
    width: int = attrs.field(validator=attrs.validators.gt(0))


class Item(msgspec.Struct):
    name: str
    price: Annotated[int, msgspec.Meta(gt=0)]


class Table(TypedDict, total=False):
    rows: int
    name: str


class Pair(NamedTuple):
    left: int
    right: str


class Address(pydantic.BaseModel):
    city: Annotated[str, pydantic.Field(min_length=2)]


class Customer(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)

    id: int = pydantic.Field(gt=0, alias="customerId")
    since: date
    addresses: list[Address] = []


@pydantic.dataclasses.dataclass
class Parcel:
    weight: Annotated[float, pydantic.Field(le=30)]


@dataclasses.dataclass
class Shipment:
    """A plain dataclass with a constraint that only pydantic enforces."""

    parcels: Annotated[int, pydantic.Field(gt=0)]


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and self.cents == other.cents

    def __hash__(self) -> int:
        return hash(self.cents)


class Price:
    """A class whose constructor raises what is neither a ValueError nor a TypeError."""

    def __init__(self, text: str) -> None:
        self.amount = Decimal(text)


class Rate(pydantic.BaseModel):
    currency: str

    @pydantic.field_validator("currency")
    @classmethod
    def _known(cls, currency: str) -> str:
        return {"EUR": "euro"}[currency]


@dataclasses.dataclass
class Country:
    code: str

    def __post_init__(self) -> None:
        self.name = {"DE": "Germany"}[self.code]


class Tagged(msgspec.Struct):
    count: Annotated[int, pydantic.Field(gt=0)]


class Secretive(pydantic.BaseModel):
    password: pydantic.SecretStr


CUSTOMER = Customer(customerId=7, since=date(2030, 1, 1), addresses=[Address(city="Ulm")])
GOOD: list[tuple[Any, Any]] = [
    (Colour, Colour.RED),
    (Point, Point(1, 2)),
    (Box, Box(3)),
    (Item, Item("pen", 2)),
    (Table, {"rows": 3}),
    (Pair, Pair(1, "b")),
    (Path, Path("/var/lib/x")),
    (PurePosixPath | None, PurePosixPath("a/b")),
    (list[Path], [Path("a"), Path("b")]),
    (Decimal, Decimal("1.10")),
    (uuid.UUID, uuid.UUID(int=7)),
    (datetime, datetime(2030, 1, 1, tzinfo=UTC)),
    (timedelta, timedelta(seconds=90)),
    (Annotated[int, msgspec.Meta(gt=0)], 3),
    (Annotated[int, pydantic.Field(gt=0)], 3),
    (Annotated[int, annotated_types.Gt(0)], 3),
    (list[Annotated[str, pydantic.StringConstraints(pattern="^a")]], ["ab"]),
    (pydantic.PositiveInt, 3),
    (Customer, CUSTOMER),
    (list[Customer] | None, [CUSTOMER]),
    (dict[str, Address], {"home": Address(city="Ulm")}),
    (Parcel, Parcel(3.5)),
    (Shipment, Shipment(2)),
    (Money, Money(250)),
    (dict[str, Money], {"price": Money(1)}),
]
BAD: list[tuple[Any, Any, str]] = [
    (Annotated[int, pydantic.Field(gt=0)], -1, "greater than 0"),
    (Annotated[int, annotated_types.Gt(0)], -1, "greater than 0"),
    (Annotated[int, msgspec.Meta(gt=0)], -1, ">= 1"),
    (pydantic.PositiveInt, 0, "greater than 0"),
    (list[Annotated[int, pydantic.Field(gt=0)]], [1, -1], r"\[1\]: input should be greater than 0"),
    (Item, {"name": "pen", "price": 0}, ">= 1"),
    (Box, {"width": -1}, "must be > 0"),
    (Customer, {"customerId": 7, "since": "2030-01-01", "addresses": [{"city": "x"}]}, r"\.addresses\[0\]\.city"),
    (Customer, {"customerId": "seven", "since": "2030-01-01"}, "customerId"),
    (Parcel, {"weight": 31}, "less than or equal to 30"),
    (Shipment, {"parcels": 0}, "greater than 0"),
    (Path, 3, "expected `str`"),
    (Money, "much", "whole number"),
    (Colour, "blue", "enum"),
    (Price, "abc", "InvalidOperation"),
    (list[Price], ["1", "abc"], "InvalidOperation"),
    (Rate, {"currency": "XXX"}, "KeyError: 'XXX'"),
]


def read_money(value: Any) -> Money:
    if not isinstance(value, int):
        raise ValueError("money is a whole number of cents")
    return Money(value)


@pytest.fixture(autouse=True)
def money(app: Rota) -> None:
    app.payload_type(Price, write=lambda price: str(price.amount), read=Price)
    app.payload_type(Money, write=lambda money: money.cents, read=read_money, schema={"type": "integer"})


def echo(annotation: Any, seen: list[Any] | None = None) -> Callable[..., Any]:
    """Return a function of one argument that returns it, annotated so."""

    def job(value):  # type: ignore[no-untyped-def]
        if seen is not None:
            seen.append(value)
        return value

    job.__annotations__ = {"value": annotation, "return": annotation}
    return job


@pytest.mark.parametrize(("annotation", "value"), GOOD)
def test_what_is_given_is_what_the_handler_and_the_caller_get(app: Rota, annotation: Any, value: Any) -> None:
    seen: list[Any] = []
    declared = app.job(echo(annotation, seen))
    with inline(app):
        result = declared.enqueue(value=value).result()
    assert (seen, result) == ([value], value)
    assert (type(seen[0]), type(result)) == (type(value), type(value))
    definition = declared.handler.definition
    text = declared.handler.payload.encode({"value": value}, Limits())
    check_schema(definition.payload_schema, text, Limits())
    assert msgspec.json.decode(msgspec.json.encode(definition.payload_schema)) == definition.payload_schema


@pytest.mark.parametrize(("annotation", "value", "problem"), BAD)
def test_a_wrong_value_is_refused_when_it_is_enqueued(app: Rota, annotation: Any, value: Any, problem: str) -> None:
    declared = app.job(echo(annotation))
    with pytest.raises(BadPayload, match=problem) as raised:
        declared.enqueue(value=value)
    assert raised.value.path.startswith("$.value")
    assert app.blocking.list() == []


def test_a_wrong_value_for_a_class_that_raises_anything(app: Rota) -> None:
    declared = app.job(echo(Country))
    with pytest.raises(BadPayload, match="cannot be read: KeyError: 'XX'"):
        declared.enqueue(value={"code": "XX"})


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Annotated[int, pydantic.Field(gt=0)], -1),
        (Customer, {"customerId": 0, "since": "2030-01-01"}),
        (list[Customer], [{"customerId": 1, "since": "2030-01-01", "addresses": [{"city": "x"}]}]),
        (Money, "much"),
    ],
)
def test_whoever_has_only_the_schema_refuses_it_too(app: Rota, annotation: Any, value: Any) -> None:
    definition = app.job(echo(annotation)).handler.definition
    with pytest.raises(BadPayload):
        check_schema(definition.payload_schema, msgspec.json.encode({"value": value}), Limits())


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (Tagged, "cannot be mixed"),
        (list[Tagged], "cannot be mixed"),
        (tuple[Item, Customer], "cannot be mixed"),
        (tuple[Annotated[int, msgspec.Meta(gt=0)], Customer], "cannot be mixed"),
        (type("Lock", (), {}), r"cannot be read from JSON.*payload_type"),
    ],
)
def test_a_constraint_that_nobody_would_enforce_is_refused(app: Rota, annotation: Any, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        app.job(echo(annotation))
    assert app.registry.names() == []


def test_what_json_would_change_is_refused(app: Rota) -> None:
    declared = app.job(echo(Secretive))
    with pytest.raises(BadPayload, match="another one after JSON"):
        declared.enqueue(value=Secretive(password=pydantic.SecretStr("x")))


def test_a_type_that_is_known_already_is_not_registered(app: Rota) -> None:
    kinds: list[Any] = [int, Point, Customer, Item]
    for kind in kinds:
        with pytest.raises(Invalid, match="by itself"):
            app.payload_type(kind, write=str, read=int)
    wrong: Any = "Money"
    with pytest.raises(Invalid, match="needs a class"):
        app.payload_type(wrong, write=str, read=int)


@pytest.fixture
def stored(database_url: str) -> Iterator[Rota]:
    app = Rota(database_url)
    yield app
    app.close()


def test_through_a_database(stored: Rota) -> None:
    customers, path = stored.job(name="both")(echo(list[Customer] | None)), stored.job(name="path")(echo(Path))
    handles = customers.enqueue(value=[CUSTOMER]), path.enqueue(value=Path("/srv"))
    drain(stored)
    assert [handle.result() for handle in handles] == [[CUSTOMER], Path("/srv")]
    assert stored.blocking.get(handles[0].id).payload == {
        "value": [{"customerId": 7, "since": "2030-01-01", "addresses": [{"city": "Ulm"}]}]
    }


class Line(pydantic.BaseModel):
    quantity: int = pydantic.Field(gt=0)


class Basket(pydantic.BaseModel):
    lines: list[Line]


def ship(order: Basket) -> None: ...


def test_the_path_leads_into_a_model() -> None:
    payload = PayloadType.of(ship, Context)
    with pytest.raises(BadPayload) as caught:
        payload.arguments('{"order": {"lines": [{"quantity": 1}, {"quantity": 0}]}}')
    assert (caught.value.path, caught.value.problem) == ("$.order.lines[1].quantity", "input should be greater than 0")


def test_a_model_that_is_not_valid_any_more_is_refused_where_it_is_not() -> None:
    order = Basket(lines=[Line(quantity=1)])
    order.lines[0].quantity = -1
    with pytest.raises(BadPayload) as caught:
        json.encode({"order": order}, Limits())
    assert caught.value.message == "payload at $.order.lines[0].quantity: input should be greater than 0"
