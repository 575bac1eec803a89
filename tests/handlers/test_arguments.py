import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, strategies
from pydantic import BaseModel, ConfigDict, Field

import windlass
from windlass import Context, DecodeError, EncodeError, InvalidValue, Job, Secret
from windlass.codec import JSON
from windlass.core.ids import JobId
from windlass.core.states import State
from windlass.handlers.arguments import JsonArguments

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        if self.x > 1_000:
            message = "too far"
            raise LookupError(message)


class Box(msgspec.Struct):
    corners: list[Point]


class Pair(NamedTuple):
    left: int
    right: str


class Entry(TypedDict):
    key: str


class Person(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    name: str = Field(alias="fullName")
    born: date


class Pool:
    pass


class Engine:
    pass


def no_provider(annotation: object) -> type | None:
    return Context if annotation is Context else None


def pool_provider(annotation: object) -> type | None:
    return Pool if annotation is Pool else no_provider(annotation)


def arguments_of(function: Callable[..., Any]) -> JsonArguments:
    return JsonArguments(function, no_provider)


def a_job(payload: bytes, codec: str = JSON.name) -> Job:
    return Job(
        *(1, JobId("0"), "default", "send", payload, codec, {}, None, 1000, State.RUNNING, 1, 3, 1, NOON, NOON),
        *(None, None, None, None, None, None, None, None, False, None, None, None, None),
    )


def send(user_id: int, *, locale: str = "en") -> None:
    pass


def anything(value: Any) -> None:  # noqa: ANN401 - as if there was no annotation
    pass


del anything.__annotations__["value"]


def extras(first: int, **rest: int) -> None:
    pass


def test_arguments_are_one_json_object_by_parameter_name() -> None:
    assert arguments_of(send).encode((42,), {"locale": "sv"}) == b'{"user_id":42,"locale":"sv"}'


def test_what_the_caller_left_out_is_not_written_and_comes_from_the_function() -> None:
    arguments = arguments_of(send)

    payload = arguments.encode((), {"user_id": 42})

    assert payload == b'{"user_id":42}'
    assert arguments.decode(a_job(payload)) == {"user_id": 42, "locale": "en"}


def test_a_default_is_the_very_object_of_the_function() -> None:
    shared: dict[str, int] = {}

    def collect(into: dict[str, int] = shared) -> None:
        pass

    assert arguments_of(collect).decode(a_job(b"{}"))["into"] is shared


def test_a_function_without_parameters_takes_an_empty_payload() -> None:
    def tick() -> None:
        pass

    arguments = arguments_of(tick)

    assert arguments.encode((), {}) == b"{}"
    assert arguments.decode(a_job(b"{}")) == {}
    assert arguments.decode(a_job(b"", "raw")) == {}


@pytest.mark.parametrize(
    "annotation,value",
    [
        (int, 7),
        (int, 2**100),
        (float, 1.5),
        (bool, True),
        (str, "a\0b é 🎉"),
        (bytes, b"\xff\0"),
        (Colour, Colour.RED),
        (Point, Point(1, 2)),
        (Box, Box([Point(1, 2)])),
        (Pair, Pair(1, "a")),
        (Entry, {"key": "k"}),
        (datetime, NOON),
        (date, NOON.date()),
        (timedelta, timedelta(hours=1)),
        (UUID, UUID(int=1)),
        (Decimal, Decimal("1.10")),
        (Literal["a", "b"], "a"),
        (int | str | None, "a"),
        (int | None, None),
        (list[Point], [Point(1, 2)]),
        (dict[str, list[int]], {"a": [1]}),
        (dict[int, str], {1: "a"}),
        (tuple[int, ...], (1, 2)),
        (set[int], {1, 2}),
        (frozenset[str], frozenset("a")),
        (Annotated[int, msgspec.Meta(ge=0)], 1),
        (Person, Person(fullName="Ada", born=NOON.date())),
        (list[Person], [Person(fullName="Ada", born=NOON.date())]),
        (Person | None, None),
        (Any, {"a": [1, None, "b"]}),
        (object, {"a": [1, None, "b"]}),
    ],
)
def test_a_value_comes_back_as_its_annotation_says(annotation: object, value: object) -> None:
    def handler(value: object) -> None:
        pass

    handler.__annotations__["value"] = annotation
    arguments = arguments_of(handler)

    decoded = arguments.decode(a_job(arguments.encode((value,), {})))

    assert decoded == {"value": value}
    assert type(decoded["value"]) is type(value)


@given(
    strategies.recursive(
        strategies.none()
        | strategies.booleans()
        | strategies.integers()
        | strategies.text()
        | strategies.floats(allow_nan=False, allow_infinity=False),
        lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner),
    )
)
def test_any_plain_value_comes_back_as_it_was(value: object) -> None:
    arguments = arguments_of(anything)

    assert arguments.decode(a_job(arguments.encode((value,), {}))) == {"value": value}


@pytest.mark.parametrize(
    "args,kwargs,message",
    [
        ((), {}, r"^send\(\) missing a required argument: 'user_id'$"),
        ((1, "sv"), {}, r"^send\(\) too many positional arguments$"),
        ((1,), {"user_id": 2}, r"^send\(\) multiple values for argument 'user_id'$"),
        ((1,), {"colour": "red"}, r"^send\(\) has no argument 'colour'$"),
        ((), {"user": 1}, r"^send\(\) has no argument 'user': did you mean 'user_id'\?$"),
    ],
)
def test_a_call_that_python_would_refuse_is_refused_at_the_caller(
    args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        arguments_of(send).encode(args, kwargs)


def test_a_value_that_does_not_fit_is_refused_at_the_caller_with_its_path() -> None:
    def store(box: Box, people: list[Person]) -> None:
        pass

    arguments = arguments_of(store)

    with pytest.raises(InvalidValue, match=r"^send\(\): user_id: Expected int, got str$"):
        arguments_of(send).encode(("42",), {})
    with pytest.raises(InvalidValue, match=r"^send\(\): user_id: Expected int, got bool$"):
        arguments_of(send).encode((True,), {})
    with pytest.raises(InvalidValue, match=r"^store\(\): box.corners\[1\].x: Expected int, got str$"):
        arguments.encode(({"corners": [{"x": 1}, {"x": "2"}]}, []), {})
    with pytest.raises(InvalidValue, match=r"^store\(\): people\[1\].fullName: Field required$"):
        arguments.encode((Box([]), [{"fullName": "Ada", "born": "1815-12-10"}, {"born": "1815-12-10"}]), {})


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_know_is_refused(number: float) -> None:
    for value in (number, {"a": [1, number]}, [None, number], (Point(1), {number})):
        with pytest.raises(InvalidValue, match=r"^anything\(\): value.*: JSON knows neither NaN nor infinity$"):
            arguments_of(anything).encode((value,), {})


@pytest.mark.parametrize("annotation", [float, float | None])
def test_a_float_that_json_does_not_know_is_refused_whatever_the_annotation(annotation: object) -> None:
    def handler(value: object) -> None:
        pass

    handler.__annotations__["value"] = annotation

    with pytest.raises(InvalidValue, match=r"^handler\(\): value: "):
        arguments_of(handler).encode((math.nan,), {})


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


UNWRITABLE = {
    "a lone surrogate": "\ud800",
    "a huge number": 10**5_000,
    "an object": object(),
    "a key": {object(): 1},
    "depth": nested(100_000),
    "a method": b"x".hex,
}


@pytest.mark.parametrize("value", UNWRITABLE.values(), ids=UNWRITABLE)
def test_a_value_that_json_cannot_say_is_refused_by_the_name_of_its_parameter(value: object) -> None:
    with pytest.raises(EncodeError, match=r"^anything\(\): value: cannot be written as JSON \("):
        arguments_of(anything).encode((value,), {})


@pytest.mark.parametrize(
    "payload,path,problem",
    [
        (b'{"user_id":"42"}', "$.user_id", "user_id: Expected int, got str"),
        (b'{"user_id":null}', "$.user_id", "user_id: Expected int, got null"),
        (b'{"user_id":1e400}', "$.user_id", "user_id: Number out of range"),
        (b'{"user_id":1,"colour":2}', "$.colour", "colour: there is no such name"),
        (b"{}", "$.user_id", "user_id: is missing, and has no default"),
        (b"", "$.user_id", "user_id: is missing, and has no default"),
        (b"[1]", "$", "Expected object, got array"),
        (b'{"user_id":1', "$", "Input data was truncated"),
        (b'{"user_id":NaN}', "$", "JSON is malformed"),
        (b'{"user_id":1,"locale":"\xff"}', "$", "'utf-8' codec can't decode"),
        (b'{"user_id":1' + b"0" * 5_000 + b"}", "$.user_id", "user_id: Integer value out of range"),
    ],
)
def test_a_payload_that_does_not_decode_is_refused_with_the_path(payload: bytes, path: str, problem: str) -> None:
    with pytest.raises(DecodeError) as caught:
        arguments_of(send).decode(a_job(payload))

    assert caught.value.path == path
    assert str(caught.value).startswith(f"send(): {problem}")


@pytest.mark.parametrize("payload", [b'{"value":' + b"[" * 100_000, b'{"value":' * 100_000, b"[" * 100_000])
def test_a_payload_that_is_nested_too_deep_is_refused(payload: bytes) -> None:
    with pytest.raises(DecodeError):
        arguments_of(anything).decode(a_job(payload))


@given(strategies.binary())
def test_whatever_bytes_come_they_decode_or_are_refused(payload: bytes) -> None:
    try:
        decoded = arguments_of(send).decode(a_job(payload))
    except DecodeError:
        return
    assert isinstance(decoded["user_id"], int)


def test_a_payload_of_another_codec_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"written by codec 'raw'.*consumer"):
        arguments_of(send).decode(a_job(b'{"user_id":1}', "raw"))


def test_an_error_in_a_class_of_the_user_is_a_bad_value() -> None:
    def draw(point: Point) -> None:
        pass

    with pytest.raises(DecodeError, match="too far"):
        arguments_of(draw).decode(a_job(b'{"point":{"x":2000}}'))
    with pytest.raises(InvalidValue, match="too far"):
        arguments_of(draw).encode(({"x": 2_000},), {})


def test_extra_keywords_go_where_the_function_takes_them() -> None:
    arguments = arguments_of(extras)

    payload = arguments.encode((1,), {"b": 2, "c": 3})

    assert payload == b'{"first":1,"b":2,"c":3}'
    assert arguments.decode(a_job(payload)) == {"first": 1, "b": 2, "c": 3}


def test_extra_keywords_are_checked_too() -> None:
    arguments = arguments_of(extras)

    with pytest.raises(InvalidValue, match=r"^extras\(\): b: Expected int, got str$"):
        arguments.encode((1,), {"b": "2"})
    with pytest.raises(DecodeError) as caught:
        arguments.decode(a_job(b'{"first":1,"b":"2"}'))
    assert caught.value.path == "$.b"


def test_an_extra_keyword_cannot_stand_in_for_what_the_server_gives() -> None:
    def handler(ctx: Context, **rest: int) -> None:
        pass

    with pytest.raises(DecodeError, match="ctx: there is no such name"):
        arguments_of(handler).decode(a_job(b'{"ctx":1}'))
    with pytest.raises(InvalidValue, match="ctx: there is no such name"):
        arguments_of(handler).encode((), {"ctx": 1})


def test_what_the_server_gives_is_no_part_of_a_call() -> None:
    def handler(ctx: Context, user_id: int, pool: Pool, engine: Engine = windlass.given()) -> None:
        pass

    arguments = JsonArguments(handler, pool_provider)

    payload = arguments.encode((42,), {})

    assert arguments.wants == {"ctx": Context, "pool": Pool, "engine": Engine}
    assert payload == b'{"user_id":42}'
    assert arguments.decode(a_job(payload)) == {"user_id": 42}
    with pytest.raises(TypeError, match="has no argument 'pool'"):
        arguments.encode((42,), {"pool": 1})


def test_a_change_of_what_is_provided_counts_after_forget() -> None:
    provided: list[type] = []

    def handler(pool: Pool) -> None:
        pass

    arguments = JsonArguments(handler, lambda annotation: Pool if annotation in provided else None)
    with pytest.raises(InvalidValue, match=r"pool is a Pool, which JSON cannot say.*lifespan"):
        arguments.encode((), {})

    provided.append(Pool)
    arguments.forget()

    assert arguments.wants == {"pool": Pool}


def test_what_is_given_needs_an_annotation() -> None:
    def handler(pool: Pool = windlass.given()) -> None:
        pass

    del handler.__annotations__["pool"]

    with pytest.raises(InvalidValue, match=r"pool = given\(\) needs an annotation"):
        _ = arguments_of(handler).wants


def test_secret_parameters_are_known_by_name() -> None:
    def handler(user_id: int, token: Annotated[str, Secret], key: Annotated[bytes | None, Secret()] = None) -> None:
        pass

    assert arguments_of(handler).secret_fields == ("token", "key")
    assert arguments_of(send).secret_fields == ()


def test_functions_that_no_job_can_call_are_refused_at_decoration() -> None:
    def many(*numbers: int) -> None:
        pass

    def by_place(number: int, /) -> None:
        pass

    def underscored(__number: int) -> None:  # noqa: PYI063 - the old spelling is the point
        pass

    with pytest.raises(InvalidValue, match=r"many\(\) cannot be a handler, it takes \*numbers"):
        arguments_of(many)
    with pytest.raises(InvalidValue, match=r"by_place\(\) cannot be a handler, it takes number by position alone"):
        arguments_of(by_place)
    with pytest.raises(InvalidValue, match="a parameter named __number"):
        arguments_of(underscored)


@pytest.mark.parametrize("name", ["self", "cls", "tag", "_hidden", "größe", "type", "payload"])
def test_unusual_names_of_parameters_work(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def handler({name}: int, *, other{name}: int = 2): pass", scope)  # noqa: S102 - a name of the test's own
    arguments = arguments_of(scope["handler"])

    decoded = arguments.decode(a_job(arguments.encode((), {name: 1})))

    assert decoded == {name: 1, f"other{name}": 2}


def test_an_annotation_may_name_what_is_defined_later() -> None:
    def handler(later: "Later") -> None:
        pass

    arguments = arguments_of(handler)

    assert arguments.decode(a_job(b'{"later":{"x":1}}')) == {"later": Later(1)}


@dataclass
class Later:
    x: int


def test_an_annotation_that_cannot_be_read_says_which() -> None:
    def handler(value: int) -> None:
        pass

    handler.__annotations__["value"] = "NoSuchName"

    with pytest.raises(InvalidValue, match=r"annotation of value in handler\(\) cannot be read"):
        arguments_of(handler).encode((1,), {})


def test_an_annotation_that_no_json_can_be_says_so() -> None:
    def handler(value: Pool | Engine) -> None:
        pass

    with pytest.raises(InvalidValue, match=r"handler\(\)"):
        arguments_of(handler).encode((1,), {})


def test_a_class_that_json_cannot_say_is_refused_also_deep_inside() -> None:
    def handler(pools: list[Pool]) -> None:
        pass

    with pytest.raises(DecodeError, match=r"pools\[0\]: .*Pool cannot be made from JSON"):
        arguments_of(handler).decode(a_job(b'{"pools":[1]}'))


def test_models_are_known_only_when_pydantic_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pydantic.main")

    with pytest.raises(EncodeError):
        JSON.encode(Person(fullName="Ada", born=NOON.date()))
