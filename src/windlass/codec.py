"""Bytes and values: JSON by msgspec behind a small interface; bytes pass through. Never pickle."""

import sys
from typing import Any, NamedTuple, Protocol

import msgspec

from windlass.core.errors import DecodeError, EncodeError

RAW = "raw"


class Codec(Protocol):
    """Turns values into bytes and back; `name` is stored with the job."""

    name: str

    def encode(self, value: object) -> bytes:
        """Return `value` as bytes; raises `EncodeError`."""
        ...

    def decode(self, data: bytes) -> Any:  # noqa: ANN401 - the JSON edge
        """Return the value; raises `DecodeError`."""
        ...


class Encoded(NamedTuple):
    """A value that was turned into bytes before, with the name of what did it; it passes through as it is."""

    data: bytes
    codec: str


def is_model(wanted: object) -> bool:
    """Whether `wanted` is a class made with pydantic; asking does not load pydantic."""
    pydantic = sys.modules.get("pydantic.main")
    return pydantic is not None and isinstance(wanted, type) and issubclass(wanted, pydantic.BaseModel)


def plain(value: object) -> Any:  # noqa: ANN401 - the JSON edge
    """Return what JSON can say for a value that msgspec does not know: a pydantic model, by what it dumps."""
    if is_model(type(value)):
        model: Any = value
        return model.model_dump(mode="json", by_alias=True, round_trip=True)
    message = f"Encoding objects of type {type(value).__name__} is unsupported"
    raise TypeError(message)


class JsonCodec:
    """JSON as msgspec writes it: dataclasses, datetimes, UUIDs, enums, structs and pydantic models are taken too."""

    name = "json"

    def __init__(self) -> None:
        """Make the encoder once; it is used for every job."""
        self._encode = msgspec.json.Encoder(enc_hook=plain).encode

    def encode(self, value: object) -> bytes:
        """Return `value` as JSON."""
        try:
            return self._encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            message = (
                f"a value of type {type(value).__name__} cannot be written as JSON ({error}): "
                "use plain values, or encode to bytes"
            )
            raise EncodeError(message) from error

    def decode(self, data: bytes) -> Any:  # noqa: ANN401 - the JSON edge
        """Return the plain value."""
        try:
            return msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            message = f"stored bytes are not JSON: {error}"
            raise DecodeError(message) from error


JSON = JsonCodec()


def encode(value: object, codec: Codec = JSON) -> tuple[bytes, str]:
    """Return `value` as bytes and the name of what made them; bytes pass through as `raw`."""
    if isinstance(value, bytes):
        return value, RAW
    if isinstance(value, Encoded):
        return value
    if isinstance(value, bytearray):
        return bytes(value), RAW
    if isinstance(value, memoryview):
        return value.tobytes(), RAW
    return codec.encode(value), codec.name


def decode(data: bytes, name: str, codec: Codec = JSON) -> Any:  # noqa: ANN401 - the JSON edge
    """Return the value that `encode` was given."""
    if name == RAW:
        return data
    if name != codec.name:
        message = f"bytes were written by codec {name!r}, which is not known here"
        raise DecodeError(message)
    return codec.decode(data)
