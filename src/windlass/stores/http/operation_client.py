"""Client of operations: store calls, or requests and responses, to and from JSON over a connection."""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec

from windlass.api.carried_call import CarriedCall
from windlass.api.operations import CARRIED, OPERATIONS, Operation
from windlass.api.problems import Problem, error_of
from windlass.core.errors import StoreUnavailable, WindlassError
from windlass.core.store_calls import Query, StoreCall
from windlass.stores.http.runner import Runner

A = TypeVar("A", bound=msgspec.Struct)
T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")

_encode: Final = msgspec.json.Encoder().encode
_decode: Final[Mapping[str, Callable[[bytes], Any]]] = {
    operation.name: msgspec.json.Decoder(operation.tells).decode for operation in OPERATIONS
}
_problem: Final = msgspec.json.Decoder(Problem).decode


class OperationClient:
    """Sends operations through a runner."""

    def __init__(self, runner: Runner, new_request_id: Callable[[], str]) -> None:
        """Name each request that changes something by `new_request_id`."""
        self._runner = runner
        self._new_request_id = new_request_id

    def named(self, request_id: str | None) -> "OperationClient":
        """Return a client for one call of a store, whose requests are named by its request id and their numbers."""
        return OperationClient(self._runner, _numbered(request_id).__next__) if request_id else self

    async def execute(self, call: StoreCall[R]) -> R:
        """Execute a call of a store by the one operation that carries it."""
        return await self.carry(CARRIED[type(call)], call)

    async def carry(self, operation: Operation[Any, Any], call: StoreCall[R]) -> R:
        """Execute a call of a store by the operation that carries it; one that is too large goes in parts."""
        carries = operation.carries
        assert carries is not None  # noqa: S101 - the operation is one that carries calls
        parts = carries.parts
        if parts is None:
            return await self._carry(operation, carries, call)
        replies: list[R] = []
        for part in parts.divide(call):
            reply = await self._carry(operation, carries, part)
            replies.append(reply)
            if parts.is_last(part, reply):
                break
        joined: R = parts.join(replies)
        return joined

    async def _carry(
        self, operation: Operation[Any, Any], carries: CarriedCall[Any, Any, Any, Any], call: StoreCall[R]
    ) -> R:
        send = self.look if isinstance(call, Query) else self.change
        reply: R = carries.reply(await send(operation, carries.request(call)))
        return reply

    async def look(self, operation: Operation[A, T], asked: A, *, job_id: str = "") -> T:
        """Ask for what changes nothing; about the job `job_id` where the path names one."""
        if operation.method == "GET":
            reply = await self._runner.call(operation, query=query_of(asked), job_id=job_id)
            return self._told(operation, reply)
        return self._told(operation, await self._runner.call(operation, _encode(asked)))

    async def change(self, operation: Operation[A, T], asked: A, *, doubt: str | None = None) -> T:
        """Ask for a change, which is made once, however often the call has to be sent.

        Raises `OutcomeUnknown` about the job `doubt` when it is not known at the deadline whether it was made.
        """
        name = self._new_request_id()
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


def _numbered(request_id: str) -> Iterator[str]:
    yield request_id
    for number in count(1):
        yield f"{request_id}/{number}"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
