"""What a caller sends becomes a record: JSON of a body, or the parameters of a query."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from windlass.api.looks import Chosen
from windlass.http.refusal import Refusal

A = TypeVar("A", bound=msgspec.Struct)

MOST_PARAMETERS = 2_000
SEE: Final = ": see /api/v1/openapi.json for what is asked for"


def body_reader(asks: type[A]) -> Callable[[bytes], A]:
    """Return what makes a record of the body of a request."""
    decode = msgspec.json.Decoder(asks).decode
    decode_lax = msgspec.json.Decoder(asks, strict=False).decode

    def decode_whole_numbers(body: bytes, error: msgspec.ValidationError) -> A:
        """Decode a body in which a whole number is written as 1.0: JSON knows no other integer."""
        if _GOT_FLOAT not in str(error):
            raise error
        made = decode_lax(body)
        if _takes_text(made, msgspec.json.decode(body)):
            raise error
        return made

    def read(body: bytes) -> A:
        try:
            if not body.isascii():
                # what is passed on as it is would else never be looked at
                body.decode()
            try:
                made = decode(body)
            except msgspec.ValidationError as error:
                made = decode_whole_numbers(body, error)
        except msgspec.ValidationError as error:
            raise unfit(error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            message = f"the body is not JSON ({error}): send what the operation asks for, {{}} if nothing"
            raise Refusal(400, "bad_request", message) from None
        if b"\\u0000" in body:
            _check_storable(made)
        return made

    return read


_GOT_FLOAT: Final = "got `float`"


def _takes_text(made: object, given: Any) -> bool:  # noqa: ANN401 - the JSON edge
    """Whether a number, a boolean or a null was made of a text, which only a lax decoder does."""
    match made:
        case msgspec.Struct():
            return any(
                _takes_text(getattr(made, field.name), given[field.encode_name])
                for field in msgspec.structs.fields(made)
                if field.encode_name in given
            )
        case dict():
            # where a key is given twice the last one holds, in both
            return any(_takes_text(value, given[key]) for key, value in cast("dict[str, object]", made).items())
        case list() | tuple():
            return any(map(_takes_text, cast("Sequence[object]", made), given))
        case int() | float() | None:
            return isinstance(given, str)
        case _:
            return False


def query_reader(asks: type[A]) -> Callable[[bytes], A]:
    """Return what makes a record of the query of a URL; a parameter may be repeated only where several are meant."""
    lists = _lists(asks)
    known = {field.encode_name for field in msgspec.structs.fields(asks)}

    def read(query: bytes) -> A:
        given = _parameters(query, known, lists)
        try:
            made = msgspec.convert(given, asks, strict=False)
        except msgspec.ValidationError as error:
            raise unfit(error) from None
        for name, text in given.items():
            _check_taken(name, text, getattr(made, name))
        return made

    return read


def _check_storable(value: object) -> None:
    """Refuse the character zero, which not every store can keep, in all text but that which becomes bytes or is cut."""
    if any("\0" in text for text in _texts(value)):
        message = "text has the character U+0000: leave it out, or send it in a payload or a kv value"
        raise Refusal(422, "invalid_value", message)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case msgspec.Struct():
            anything = () if isinstance(value, Chosen) else ANYTHING
            for name in value.__struct_fields__:
                if name not in anything:
                    yield from _texts(getattr(value, name))
        case dict():
            for pair in cast("dict[object, object]", value).items():
                yield from _texts(pair)
        case list() | tuple():
            for each in cast("Sequence[object]", value):
                yield from _texts(each)
        case _:
            pass


ANYTHING: Final = frozenset(
    {
        "after",
        "error",
        "expected",
        "headers",
        "history",
        "key",
        "keys",
        "last_error",
        "lines",
        "log",
        "note",
        "payload",
        "prefix",
        "reason",
        "result",
        "value",
    }
)


def unfit(error: msgspec.ValidationError) -> Refusal:
    """Refuse what is JSON but not what was asked for; the message tells where."""
    return Refusal(422, "invalid_value", f"{error}{SEE}")


def _check_taken(name: str, text: str, taken: object) -> None:
    """Refuse what text is taken for where it is all that there is: a word for nothing, and a number for a time."""
    if taken is None:
        message = f"the parameter {name} has no null: leave it out"
        raise Refusal(422, "invalid_value", message)
    if isinstance(taken, datetime) and "-" not in text[1:]:
        message = f"the parameter {name} is a time in ISO 8601, as 2026-01-31T09:00:00Z"
        raise Refusal(422, "invalid_value", message)


def _parameters(query: bytes, known: set[str], lists: set[str]) -> dict[str, Any]:
    if not query:
        return {}
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS
        )
    except ValueError:
        message = "the query of the URL cannot be read: escape its values as UTF-8"
        raise Refusal(422, "invalid_value", message) from None
    given: dict[str, Any] = {}
    for name, value in pairs:
        _check_storable(value)
        if name not in known:
            message = f"there is no parameter {name[:60]!r}: it may have {', '.join(sorted(known)) or 'none'}"
            raise Refusal(422, "invalid_value", message)
        if name in lists:
            given.setdefault(name, []).append(value)
        elif name in given:
            message = f"the parameter {name} is there twice: send it once"
            raise Refusal(422, "invalid_value", message)
        else:
            given[name] = value
    return given


def _lists(asks: type[msgspec.Struct]) -> set[str]:
    hints = get_type_hints(asks)
    return {name for name, hint in hints.items() if _is_list(hint)}


def _is_list(hint: object) -> bool:
    return get_origin(hint) is list or any(get_origin(each) is list for each in get_args(hint))
