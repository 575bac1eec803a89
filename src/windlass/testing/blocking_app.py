"""An app in a test without an event loop: the same names, one thin layer over the async one."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from windlass.app.app import App
from windlass.blocking.client import BlockingClient
from windlass.blocking.layer import Blocking
from windlass.client.client import Client
from windlass.testing.app import TestApp
from windlass.testing.clock import FakeClock
from windlass.testing.looking import Looking, StoreReader

R = TypeVar("R")


class BlockingTestApp(Looking):
    """An app in a test of code that uses `enqueue_sync`: what `in_memory_sync` and `in_database_sync` give."""

    __test__ = False

    clock: FakeClock
    """The clock of the store, the client and everything that runs here."""

    def __init__(self, app: App, reader: StoreReader, clock: FakeClock) -> None:
        """Test `app`, which is on `clock` and on the store of `reader`."""
        super().__init__(app, reader)
        self.clock = clock
        self._inner: TestApp | None = None

    @property
    def client(self) -> BlockingClient:
        """The blocking client of the app, on the store of the test."""
        return self.app.blocking_client

    def run(self, call: Callable[[TestApp], Coroutine[Any, Any, R]]) -> R:
        """Return what `call` returns for the async form, and block until then."""
        return self.client.run(lambda client: call(self._of(client)))

    drain = Blocking(TestApp.drain)
    advance = Blocking(TestApp.advance)

    def close(self) -> None:
        """Close what was opened for the test; it is done at the end of the block."""
        if self._inner is not None:
            self.run(TestApp.close_lifespan)
        self.app.close_sync()

    def _of(self, client: Client) -> TestApp:
        if self._inner is None:
            self._inner = TestApp(self.app, self._reader, self.clock, client)
        return self._inner
