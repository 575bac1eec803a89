"""A Redis to which everything can go wrong: a TCP proxy on loopback that a test steers.

    async with Proxy(url) as proxy:
        lost = proxy.drop_reply(lambda request: request.name == b"EVALSHA")
        ...  # what works through proxy.url
        await lost.wait()

A request is one command, also where many are sent at once. What subscribers are told is passed on as it comes, and so
are commands by which they subscribe; where the protocol has no type of its own for that, an array that begins as a
message does is one, on a connection that has ever subscribed. The proxy stands before one server: who is sent elsewhere
by a Cluster or a sentinel goes there without it.
"""

from typing import Final

from tests.redis.frames import Request, command, read_value
from tests.servers import proxied, proxy
from tests.servers.faults import Faults

_FAIL: Final = "return redis.error_reply(ARGV[1])"


class Proxy(proxy.Proxy[Request]):
    """Stands before the Redis at a URL; once it is entered, `url` leads there through it.

    What `fail` takes is an error as the server words it: `LOADING Redis is loading the dataset in memory`.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, port=6379)

    def proxied(self, streams: proxied.Streams) -> "ProxiedClient":
        return ProxiedClient(self, streams)


class ProxiedClient(proxied.ProxiedClient[Request]):
    """One connection through the proxy, to be held or reset alone."""

    def __init__(self, faults: Faults[Request], streams: proxied.Streams) -> None:
        super().__init__(faults, streams)
        self._listens = False
        self._has_pushes = False

    def failing(self, error: str) -> bytes:
        return command("EVAL", _FAIL, "0", error)

    async def requests(self) -> None:
        while value := await read_value(self.reader):
            request = Request(value.texts, id(self))
            if request.listens:
                self._listens = True
                await self.pass_on(value.whole)
            else:
                await self.request(request, value.whole)

    async def answers(self) -> None:
        while value := await read_value(self.server_reader):
            self._has_pushes |= value.is_push
            if value.is_push or (self._listens and not self._has_pushes and value.looks_told):
                await self.give(value.whole)
            else:
                await self.answer(value.whole, ends=True)
