"""What a handler needs of the app that it belongs to."""

from typing import Protocol, TypeVar

from windlass.app.handle import BlockingHandle, Call, Handle
from windlass.client.steering import Id
from windlass.engine.served import Served
from windlass.handlers.results import ResultReader

R = TypeVar("R")


class Home(Served, Protocol):
    """An app, as its handlers see it."""

    async def enqueue(self, call: Call[R], *, connection: object = None) -> Handle[R]:
        """Put one call in line."""
        ...

    def enqueue_sync(self, call: Call[R], *, connection: object = None) -> BlockingHandle[R]:
        """Put one call in line, and block until it is."""
        ...

    def handle(self, id: Id, results: ResultReader[R]) -> Handle[R]:
        """Return the handle of a job that was enqueued before."""
        ...

    def handle_sync(self, id: Id, results: ResultReader[R]) -> BlockingHandle[R]:
        """Return the handle of a job that was enqueued before, for code without an event loop."""
        ...

    def tenant_now(self) -> str | None:
        """Return whom a job belongs to that is enqueued here and now."""
        ...
