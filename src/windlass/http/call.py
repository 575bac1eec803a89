"""One call of an operation, as its handler sees it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from starlette.types import Receive

from windlass.api.operations import Operation
from windlass.client.client import Client
from windlass.core.ids import JobId
from windlass.core.store import Store
from windlass.http.auth import Identity
from windlass.http.body import Gone
from windlass.http.payload_reading import Reading
from windlass.http.shared import Shared

A = TypeVar("A", bound=msgspec.Struct)
T = TypeVar("T", bound=msgspec.Struct)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Call(Generic[A]):
    """What is asked, by whom, and what there is to answer it with."""

    asked: A
    identity: Identity
    shared: Shared
    store: Store
    """The store as far as the identity may see it."""
    receive: Receive
    reading: Reading
    """What the call reads of payloads."""
    request_id: str | None = None
    """How the store is to know the call when it is repeated: no other caller and no other operation has this name."""
    id: JobId | None = None
    """The job that the path names."""
    first_elsewhere: bool = False
    """Whether it is a repeat of a call that was sent to another process first."""
    repeats: bool = False
    """Whether its caller has asked before, and heard no answer."""

    @property
    def client(self) -> Client:
        """The client that is served."""
        return self.shared.client

    @property
    def job_id(self) -> JobId:
        """The job that the path names, where it always does."""
        assert self.id is not None  # noqa: S101 - the path of the operation has it
        return self.id

    async def while_here(self, work: Coroutine[Any, Any, R]) -> R:
        """Return what `work` does; it is cancelled, and `Gone` raised, as soon as the caller hangs up."""
        doing = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(_left(self.receive))
        try:
            await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise Gone
            return doing.result()
        finally:
            for each in (doing, leaving):
                each.cancel()
            await asyncio.wait((doing, leaving))
            if not doing.cancelled():
                # of one that ended by an error while its caller went, the error is nobody's
                doing.exception()


@dataclass(frozen=True, slots=True)
class Handled(Generic[A, T]):
    """An operation and the function that does it."""

    operation: Operation[A, T]
    handler: Callable[[Call[A]], Awaitable[T]]


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
