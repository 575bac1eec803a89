"""Which fields of the arguments are secret, found in the annotations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import msgspec
import pytest
import typing_extensions
from pydantic import AliasChoices, BaseModel, Field, RootModel

from windlass import Secret
from windlass.core.names import check_header
from windlass.handlers.arguments import JsonArguments
from windlass.handlers.secret_paths import HEADER

T = TypeVar("T")
Pin = Annotated[str, Secret]


@dataclass
class Card:
    number: Annotated[str, Secret]
    holder: str
    brands: ClassVar[Pin] = ""


Payment = NewType("Payment", Card)


class Login(TypedDict):
    user: str
    code: NotRequired[Annotated[str, Secret()]]


class Foreign(typing_extensions.TypedDict):
    code: Pin


class Spot(NamedTuple):
    name: str
    pin: Pin


class Order(msgspec.Struct, rename="camel"):
    card_used: Card
    door_code: Pin


class Packed(msgspec.Struct, array_like=True):
    pin: Pin


class Account(BaseModel):
    pin: Pin = Field(alias="thePin")
    cards: list[Card] | None = None
    foreign: Foreign | None = None


class Early(BaseModel):
    later: "Later"


class Later(BaseModel):
    pin: Pin


class Odd(BaseModel):
    pin: Annotated[str, Secret, Field(validation_alias=AliasChoices("a", "b"))]


class Pins(RootModel[list[Pin]]):
    pass


@dataclass
class Tree:
    pin: Pin
    children: "list[Tree]"


@dataclass
class Chain:
    next: "Chain | None"


@dataclass
class Maybe:
    pin: Pin | None


@dataclass
class Box(Generic[T]):
    inside: T


class PinBox(Box[Pin]):
    pass


class Named(msgspec.Struct):
    pin: Pin = msgspec.field(name="a.b")


CASES: Any = [
    (Pin, ["it"]),
    (Payment, ["it.number"]),
    (list[Pin], ["it[]"]),
    (tuple[int, Pin], ["it[]"]),
    (tuple[Pin, ...], ["it[]"]),
    (Annotated[list[Card], Secret], ["it"]),
    (Card, ["it.number"]),
    (Card | None, ["it.number"]),
    (Sequence[Card], ["it[].number"]),
    (dict[str, list[Card]], ["it[][].number"]),
    (Mapping[Pin, int], ["it"]),
    (Login, ["it.code"]),
    (Spot, ["it[]"]),
    (Order, ["it.cardUsed.number", "it.doorCode"]),
    (Packed, ["it[]"]),
    (Account, ["it.pin", "it.thePin", "it.cards[].number", "it.foreign.code"]),
    (Early, ["it.later.pin"]),
    (Odd, ["it.pin", "it"]),
    (Pins, ["it[]"]),
    (Tree, ["it.pin", "it.children[]"]),
    (Box[Pin], ["it"]),
    (PinBox, ["it"]),
    (Box[int], []),
    (Named, ["it"]),
    (Chain, []),
    (Maybe, ["it.pin"]),
    (Literal["Secret"], []),
    (int | str, []),
    (Any, []),
    (dict[str, object], []),
]


def paths_of(annotation: Any) -> tuple[str, ...]:  # noqa: ANN401 - an annotation
    def handler(it: object) -> None:
        pass

    handler.__annotations__["it"] = annotation
    return JsonArguments(handler, lambda _: None).secret_fields


@pytest.mark.parametrize("annotation,paths", CASES, ids=str)
def test_the_paths_of_secret_fields_are_known(annotation: Any, paths: Sequence[str]) -> None:  # noqa: ANN401
    assert paths_of(annotation) == tuple(paths)


def test_further_arguments_hide_all_since_nobody_knows_their_names() -> None:
    def handler(user_id: int, **codes: Pin) -> None:
        pass

    assert JsonArguments(handler, lambda _: None).secret_fields == ("[]",)


def test_very_many_and_very_deep_fields_are_hidden_with_what_is_around_them() -> None:
    wide: Any = make_dataclass("Wide", [(f"f{n}", Pin) for n in range(1_000)])
    long: Any = make_dataclass("Long", [(f"f{n}{'x' * 150}", Pin) for n in range(20)])
    deep: Any = Pin
    for n in range(30):
        deep = make_dataclass(f"Deep{n}", [("left", deep), ("right", deep)])

    assert paths_of(wide) == ("it",)
    assert paths_of(long) == ("it",)
    assert paths_of(list[wide]) == ("it",)
    assert paths_of(deep) == ("it",)


@pytest.mark.parametrize("count,length,paths", [(30, 5, 30), (60, 5, 60), (30, 150, 1), (400, 5, 1)])
def test_the_header_is_always_short_enough_to_be_kept(count: int, length: int, paths: int) -> None:
    scope: dict[str, Any] = {"Pin": Pin}
    names = [f"p{n:03}" + "ü" * (length - 4) for n in range(count)]
    exec(f"def handler({', '.join(f'{name}: Pin' for name in names)}): pass", scope)  # noqa: S102 - names of the test's own
    arguments = JsonArguments(scope["handler"], lambda _: None)

    assert arguments.headers is not None
    check_header(HEADER, arguments.headers[HEADER])
    assert len(arguments.secret_fields) == paths


def test_arguments_without_secrets_need_no_header() -> None:
    def handler(user_id: int, **more: int) -> None:
        pass

    assert JsonArguments(handler, lambda _: None).headers is None
