"""A serving process as the database of a fleet, which reaches it through a proxy that loses replies."""

from typing import Final

from proofs.fleet.lossy_proxy import ProxyThread
from proofs.http.http_serving import ServingProcess


class HttpDatabase:
    """Is killed and started again behind its proxy, whose URL stays."""

    def __init__(self, serving: ServingProcess, proxy: ProxyThread) -> None:
        self._serving = serving
        self._proxy = proxy
        self.at_work: Final = "with a request that was not answered"
        self.url: Final = proxy.url

    @property
    def pid(self) -> int:
        return self._serving.pid

    def cut(self, *, busy: bool) -> str | None:
        return self._proxy.cut(busy=busy)

    def kill(self) -> None:
        self._serving.kill()

    def stop(self) -> None:
        self._serving.stop()

    def start(self) -> None:
        self._serving.start()
