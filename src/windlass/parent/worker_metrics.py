"""What a child tells of itself by HTTP: its metrics, and how it is."""

import os
import socket
from collections.abc import Callable
from typing import Final

import msgspec

from windlass.api.about import Health
from windlass.engine.server import Server
from windlass.metrics.exposition import TEXT, registry_with, written
from windlass.metrics.listener import Answer, Listener
from windlass.metrics.of_server import ServerCollector
from windlass.parent.serving import Serving

_JSON: Final = "application/json"
_STARTING: Final = Health(ready=False, reasons=["the server starts, or is stopping"])


class WorkerMetrics:
    """Serves them from a thread of its own, also while the server starts, stops, or its event loop is blocked."""

    def __init__(self, descriptor: int, serving: Callable[[], Serving | None]) -> None:
        """Serve what `serving` returns at the time, on a port that is open."""
        port = socket.socket(fileno=descriptor)
        port.set_inheritable(False)
        # what a handler forks must not hold the port open
        os.register_at_fork(after_in_child=port.close)
        self._serving = serving
        self._registry = registry_with(ServerCollector(self._server))
        self._listener = Listener(port, self._answer)
        self._listener.start()

    def close(self) -> None:
        """Answer no more: another process has the port too."""
        self._listener.close()

    def _server(self) -> Server | None:
        serving = self._serving()
        return None if serving is None else serving.server

    def _answer(self, path: str) -> Answer | None:
        match path:
            case "/metrics":
                return Answer(200, TEXT, written(self._registry))
            case "/health/live":
                return _told(Health(ready=True))
            case "/health/ready":
                return _told(self._health())
            case _:
                return None

    def _health(self) -> Health:
        serving = self._serving()
        found = None if serving is None else serving.health()
        return _STARTING if found is None else Health(ready=found.ready, reasons=list(found.reasons))


def _told(health: Health) -> Answer:
    return Answer(200 if health.ready else 503, _JSON, msgspec.json.encode(health))
