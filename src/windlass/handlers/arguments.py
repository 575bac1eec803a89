"""The arguments of a handler: one JSON object by parameter name, and back, checked against the annotations."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from inspect import Parameter
from typing import Annotated, Any, Final, NoReturn, TypeAlias, get_args, get_origin

import msgspec
from msgspec.inspect import CustomType, type_info
from msgspec.structs import asdict

from windlass.codec import JSON, is_model, plain
from windlass.core.errors import DecodeError, EncodeError, InvalidValue
from windlass.core.job import Job
from windlass.handlers.marked import secret_paths
from windlass.handlers.secret_paths import EACH, Path, header_of, written
from windlass.handlers.signature import Signature
from windlass.handlers.values import BAD_VALUE, build, not_finite, problem_and_path

Provider: TypeAlias = Callable[[Any], type | None]
"""Tells the type by which the server gives a parameter annotated like this; None when a caller gives it."""

_CONSTANT: Final = (str, bytes, int, float, Enum, timedelta, type(None))
"""Defaults that msgspec takes as they are, which costs less for each job."""
_ENCODER: Final = msgspec.json.Encoder(enc_hook=plain)
_NOTHING: Final = b"{}"


class JsonArguments:
    """How the arguments of one function are written and read; both check them, and name the path of a bad value."""

    def __init__(self, function: Callable[..., Any], provider: Provider) -> None:
        """Refuse a function whose arguments no job can have; its annotations are read at the first use."""
        self.signature = Signature(function)
        self._provider = provider
        self._shape: Shape | None = None

    @property
    def wants(self) -> Mapping[str, type]:
        """The parameters that no caller gives, with their types: the context, and what a lifespan provides."""
        return (self._shape or self._read_annotations()).wants

    @property
    def secret_fields(self) -> tuple[str, ...]:
        """The paths of what is marked with `Secret`: `pin`, `card.number`, `items[].code`."""
        return (self._shape or self._read_annotations()).secret_fields

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The headers that each job with such arguments has, by which readers know what to hide."""
        return (self._shape or self._read_annotations()).headers

    def forget(self) -> None:
        """Read the annotations anew at the next use: what the server gives has changed."""
        self._shape = None

    def encode(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bytes:
        """Return the arguments of a call as JSON that `decode` takes.

        Raises `TypeError` where the call itself would, `InvalidValue` with the path of a value that does not fit its
        annotation, and `EncodeError` for one that JSON cannot say.
        """
        shape = self._shape or self._read_annotations()
        call = self._bound(shape, args, kwargs)
        try:
            payload = _ENCODER.encode(call)
        except BAD_VALUE as error:
            self._refuse_unwritable(shape, args, kwargs, error)
        try:
            shape.read(payload)
        except BAD_VALUE as error:
            self._refuse(*problem_and_path(error), error)
        # JSON has no NaN and no infinity: they were written as null
        if b"null" in payload:
            path = not_finite(msgspec.to_builtins(call, str_keys=True, enc_hook=plain))
            if path is not None:
                self._refuse("JSON knows neither NaN nor infinity", path, None)
        return payload

    def decode(self, job: Job) -> dict[str, Any]:
        """Return the arguments in a job, checked; raises `DecodeError` with the path of the bad value."""
        shape = self._shape or self._read_annotations()
        payload = job.payload or _NOTHING
        if job.codec != JSON.name and job.payload:
            message = (
                f"{self.signature.name}(): the payload was written by codec {job.codec!r}, and a handler takes a JSON "
                "object by parameter name: enqueue a dict, or use @app.consumer for raw jobs"
            )
            raise DecodeError(message)
        try:
            return shape.read(payload)
        except BAD_VALUE as error:
            problem, path = problem_and_path(error)
            raise DecodeError(self._said(problem, path), path) from error

    def _bound(self, shape: "Shape", args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        if shape.extra is not None:
            return self.signature.bind(args, kwargs, without=shape.wants)
        try:
            return shape.call(*args, **kwargs)
        except TypeError:
            # says it as Python does, and always raises: the two take the same calls
            return self.signature.bind(args, kwargs, without=shape.wants)

    def _refuse(self, problem: str, path: str, error: BaseException | None) -> NoReturn:
        raise InvalidValue(self._said(problem, path)) from error

    def _refuse_unwritable(
        self, shape: "Shape", args: Sequence[object], kwargs: Mapping[str, object], error: BaseException
    ) -> NoReturn:
        bad = ""
        for name, value in self.signature.bind(args, kwargs, without=shape.wants).items():
            try:
                _ENCODER.encode(value)
            except BAD_VALUE:
                bad = f"{name}: "
                break
        problem, _ = problem_and_path(error)
        message = f"{self.signature.name}(): {bad}cannot be written as JSON ({problem})"
        raise EncodeError(message) from error

    def _said(self, problem: str, path: str) -> str:
        where = path.removeprefix("$").removeprefix(".")
        return f"{self.signature.name}(): {where}: {problem}" if where else f"{self.signature.name}(): {problem}"

    def _read_annotations(self) -> "Shape":
        self._shape = Shape(self.signature, self._provider)
        return self._shape


class Shape:
    """What is known of a handler's parameters once their annotations were read."""

    def __init__(self, signature: Signature, provider: Provider) -> None:
        """Read the annotations; raises `InvalidValue` for one that no job can have."""
        annotations = {name: signature.annotation(name) for name in signature.parameters}
        self.wants = wants_of(signature, annotations, provider)
        taken = [each for each in signature.parameters.values() if each.name not in self.wants]
        self.names = frozenset(each.name for each in taken)
        self.call = _call_type(signature.name, taken)
        self.extra = None if signature.extra is None else signature.annotation(signature.extra.name)
        fields = [_field(each, _checked(signature, each.name, annotations[each.name])) for each in taken]
        strict = signature.extra is None
        values = msgspec.defstruct(signature.name, fields, kw_only=True, forbid_unknown_fields=strict, gc=False)
        self._read = _decoder(signature, values).decode
        self.secret_fields = written(
            _secrets({name: annotations[name] for name in annotations if name in self.names}, self.extra)
        )
        self.headers = header_of(self.secret_fields)
        self._extras = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._extra_value = None if strict else _decoder(signature, self.extra)

    def read(self, payload: bytes) -> dict[str, Any]:
        """Return the arguments in a payload; raises one of `BAD_VALUE`."""
        arguments = asdict(self._read(payload))
        if self._extra_value is not None:
            for name, value in self._extras.decode(payload).items():
                if name not in self.names:
                    arguments[name] = self._read_extra(name, value, self._extra_value)
        return arguments

    def _read_extra(self, name: str, value: msgspec.Raw, decoder: msgspec.json.Decoder[Any]) -> Any:  # noqa: ANN401
        if name in self.wants:
            message = f"Object contains unknown field `{name}`"
            raise msgspec.ValidationError(message)
        try:
            return decoder.decode(value)
        except msgspec.ValidationError as error:
            problem, path = problem_and_path(error)
            message = f"{problem} - at `$.{name}{path.removeprefix('$')}`"
            raise msgspec.ValidationError(message) from error.__cause__


def wants_of(signature: Signature, annotations: Mapping[str, Any], provider: Provider) -> dict[str, type]:
    """Return the parameters that no caller gives, with the types by which the server finds them."""
    wants: dict[str, type] = {}
    for name, annotation in annotations.items():
        bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
        given_by = provider(bare)
        if given_by is not None:
            wants[name] = given_by
        elif name in signature.marked:
            wants[name] = _lifespan_type(signature, name, bare)
    return wants


def _lifespan_type(signature: Signature, name: str, annotation: Any) -> type:  # noqa: ANN401 - an annotation
    if annotation is Any:
        message = f"{signature.name}(): {name} = given() needs an annotation, by which a lifespan provides it"
        raise InvalidValue(message)
    wanted: type = annotation
    return wanted


def _secrets(annotations: Mapping[str, Any], extra: Any) -> list[Path]:  # noqa: ANN401 - an annotation
    paths = [path for name, annotation in annotations.items() for path in secret_paths(annotation, (name,))]
    # further arguments have names of their own, which only a caller knows
    return [*paths, *secret_paths(extra, (EACH,))]


def _call_type(name: str, taken: Sequence[Parameter]) -> Callable[..., object]:
    """Return what binds a call as Python does, at a tenth of the cost; what is left out is not written."""
    named = [_left_out(each) for each in taken if each.kind is Parameter.KEYWORD_ONLY]
    placed = [_left_out(each) for each in taken if each.kind is not Parameter.KEYWORD_ONLY]
    base = msgspec.defstruct(name, named, kw_only=True)
    return msgspec.defstruct(name, placed, bases=(base,))


def _left_out(parameter: Parameter) -> tuple[str, Any] | tuple[str, Any, Any]:
    if parameter.default is Parameter.empty:
        return parameter.name, Any
    return parameter.name, Any, msgspec.UNSET


def _field(parameter: Parameter, annotation: Any) -> tuple[str, Any] | tuple[str, Any, Any]:  # noqa: ANN401
    if parameter.default is Parameter.empty:
        return parameter.name, annotation
    if isinstance(parameter.default, _CONSTANT):
        return parameter.name, annotation, parameter.default
    # the very object that the function has, whatever it is
    return parameter.name, annotation, msgspec.field(default_factory=lambda: parameter.default)


def _checked(signature: Signature, name: str, annotation: Any) -> Any:  # noqa: ANN401 - an annotation
    if annotation is object:
        return Any
    try:
        known = type_info(annotation)
    except Exception as error:
        message = f"{signature.name}(): {name} is annotated with what no job can have ({error})"
        raise InvalidValue(message) from error
    if isinstance(known, CustomType) and not is_model(known.cls):
        message = (
            f"{signature.name}(): {name} is a {known.cls.__qualname__}, which JSON cannot say: take plain values, a "
            "dataclass or a model; if a lifespan provides it, annotate what that yields, or write = windlass.given()"
        )
        raise InvalidValue(message)
    return annotation


def _decoder(signature: Signature, wanted: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - a type of any form
    try:
        return msgspec.json.Decoder(wanted, dec_hook=build)
    except TypeError as error:
        message = f"{signature.name}() is annotated with what no job can have ({error})"
        raise InvalidValue(message) from error
