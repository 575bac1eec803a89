"""A Postgres to which everything can go wrong: a TCP proxy on loopback that a test steers.

    async with Proxy(cluster().url) as proxy:
        lost = proxy.drop_reply(lambda request: request.text.startswith("COMMIT"))
        ...  # what works through proxy.url
        await lost.wait()

A request is all that a client sends until it waits: one `Query`, or messages up to a `Sync`. Encryption is refused.
"""

from tests.postgres.frames import PARTS, READY, Request, Requests, raising, read_frame, read_startup
from tests.servers import proxied, proxy
from tests.servers.faults import Faults


class Proxy(proxy.Proxy[Request]):
    """Stands before the Postgres at a URL; once it is entered, `url` leads there through it.

    What `fail` takes is an SQLSTATE.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, port=5432)

    def proxied(self, streams: proxied.Streams) -> "ProxiedClient":
        return ProxiedClient(self, streams)


class ProxiedClient(proxied.ProxiedClient[Request]):
    """One connection through the proxy, to be held or reset alone."""

    def __init__(self, faults: Faults[Request], streams: proxied.Streams) -> None:
        super().__init__(faults, streams)
        # the start of the session is answered too
        self.expect(runs=False)

    def failing(self, error: str) -> bytes:
        return raising(error)

    async def requests(self) -> None:
        await self.pass_on(await self._startup())
        requests, whole = Requests(id(self)), b""
        while frame := await read_frame(self.reader):
            whole += frame.whole
            if request := requests.add(frame):
                await self.request(request, whole)
            elif frame.letter in PARTS:
                continue
            else:
                await self.pass_on(whole)
            whole = b""

    async def answers(self) -> None:
        while frame := await read_frame(self.server_reader):
            await self.answer(frame.whole, ends=frame.letter == READY)

    async def _startup(self) -> bytes:
        while True:
            message, asks_for_encryption = await read_startup(self.reader)
            if not asks_for_encryption:
                return message
            self.writer.write(b"N")
