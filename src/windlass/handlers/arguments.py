"""The arguments of a handler: one JSON object by parameter name, and back, checked against the annotations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import msgspec

from windlass.codec import JSON, plain
from windlass.core.errors import DecodeError, EncodeError, InvalidValue
from windlass.core.job import Job
from windlass.handlers.shape import Provider, Shape
from windlass.handlers.signature import Signature
from windlass.handlers.values import BAD_VALUE, not_finite, problem_and_path

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

    def _bound(self, shape: Shape, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
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
        self, shape: Shape, args: Sequence[object], kwargs: Mapping[str, object], error: BaseException
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

    def _read_annotations(self) -> Shape:
        self._shape = Shape(self.signature, self._provider)
        return self._shape
