"""Calls of operations: records in, records out; what goes over the wire is made and read here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec

from windlass.api.operations import OPERATIONS, Operation
from windlass.api.problems import Problem, error_of
from windlass.core.errors import StoreUnavailable, WindlassError
from windlass.stores.http.runner import Runner

A = TypeVar("A", bound=msgspec.Struct)
T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")

_encode: Final = msgspec.json.Encoder().encode
_decode: Final[Mapping[str, Callable[[bytes], Any]]] = {
    operation.name: msgspec.json.Decoder(operation.tells).decode for operation in OPERATIONS
}
_problem: Final = msgspec.json.Decoder(Problem).decode


class Calls:
    """Asks for operations through a runner."""

    def __init__(self, runner: Runner, new_request_id: Callable[[], str]) -> None:
        """Name each call that changes something by `new_request_id`, unless its caller has named it."""
        self._runner = runner
        self._new_request_id = new_request_id

    async def look(self, operation: Operation[A, T], asked: A, *, job_id: str = "") -> T:
        """Ask for what changes nothing; about the job `job_id` where the path names one."""
        if operation.method == "GET":
            reply = await self._runner.call(operation, query=query_of(asked), job_id=job_id)
            return self._told(operation, reply)
        return self._told(operation, await self._runner.call(operation, _encode(asked)))

    async def change(
        self, operation: Operation[A, T], asked: A, *, request_id: str | None = None, doubt: str | None = None
    ) -> T:
        """Ask for a change, which is made once, however often the call has to be sent.

        Raises `OutcomeUnknown` about the job `doubt` when it is not known at the deadline whether it was made.
        """
        name = request_id or self._new_request_id()
        reply = await self._runner.call(operation, _encode(asked), request_id=name, writes=True, doubt=doubt)
        return self._told(operation, reply)

    def _told(self, operation: Operation[A, T], reply: bytes) -> T:
        try:
            told: T = _decode[operation.name](reply)
        except msgspec.MsgspecError as error:
            message = f"{self._runner.where} answered {operation.name!r} in a form that is not known here ({error}): "
            raise StoreUnavailable(f"{message}use the same release of windlass on both sides") from error
        return told


def problem_told(body: bytes) -> WindlassError | None:
    """Return the error that the body of a refusal tells; None where it does not."""
    try:
        return error_of(_problem(body))
    except msgspec.MsgspecError:
        return None


def query_of(asked: msgspec.Struct) -> str:
    """Return what is asked for as the query of a URL; what is left at its default is left out."""
    values: dict[str, Any] = msgspec.to_builtins(asked)
    return urlencode([(name, _word(value)) for name, value in values.items() if value is not None])


def pages(items: Sequence[V], most: int) -> list[Sequence[V]]:
    """Return all of `items` in their order, at most `most` at a time."""
    return [items[begin : begin + most] for begin in range(0, len(items), most)]


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
