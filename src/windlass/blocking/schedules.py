"""The blocking form of `client.schedules`."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from windlass.blocking.layer import Blocking, Layer
from windlass.client.client import Client
from windlass.client.schedules import Schedules

R = TypeVar("R")


class BlockingSchedules:
    """The schedules of a store, by blocking calls."""

    def __init__(self, client: Layer[Client]) -> None:
        """Work through `client`."""
        self._client = client

    def run(self, call: Callable[[Schedules], Coroutine[Any, Any, R]]) -> R:
        """Return what `call` returns for the schedules."""
        return self._client.run(lambda client: call(client.schedules))

    put = Blocking(Schedules.put)
    remove = Blocking(Schedules.remove)
    pause = Blocking(Schedules.pause)
    resume = Blocking(Schedules.resume)
    run_now = Blocking(Schedules.run_now)
    get = Blocking(Schedules.get)
    list = Blocking(Schedules.list)
