"""The result of a handler, read by its return annotation."""

from collections.abc import Callable
from inspect import Parameter
from typing import Any, Generic, TypeVar, cast

import msgspec

from windlass.codec import JSON
from windlass.core.errors import DecodeError, InvalidValue
from windlass.core.job import Job
from windlass.handlers.signature import annotation_of
from windlass.handlers.values import BAD_VALUE, build, problem_and_path

R = TypeVar("R")


class ResultReader(Generic[R]):
    """Reads the results of one function; without an annotation that JSON can have, as plain values."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Read the annotation at the first use."""
        self._function = function
        self._decoder: msgspec.json.Decoder[Any] | None = None

    def read(self, job: Job, otherwise: Callable[[Job], Any]) -> R:
        """Return the result of a job; what is not JSON is read by `otherwise`. Raises `DecodeError`."""
        if job.result is None:
            return cast("R", None)
        if job.result_codec != JSON.name:
            return cast("R", otherwise(job))
        decoder = self._decoder = self._decoder or self._made()
        try:
            return cast("R", decoder.decode(job.result))
        except BAD_VALUE as error:
            problem, path = problem_and_path(error)
            message = f"the result of job {job.id} is not what its handler is annotated to return: {problem} at {path}"
            raise DecodeError(message, path) from error

    def _made(self) -> msgspec.json.Decoder[Any]:
        written = getattr(self._function, "__annotations__", {}).get("return", Parameter.empty)
        try:
            wanted = annotation_of(self._function, "return", written)
            return msgspec.json.Decoder(wanted, dec_hook=build)
        except (InvalidValue, TypeError):
            return msgspec.json.Decoder()
