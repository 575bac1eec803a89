"""A serving process to which everything can go wrong: a TCP proxy on loopback that a test steers.

    async with Proxy(url) as proxy:
        lost = proxy.drop_reply(lambda request: request.path == "/api/v1/jobs")
        ...  # what works through proxy.url
        await lost.wait()

What is told on and on, as news is, is passed on as it comes: nothing is planned for it.
"""

from typing import Final

from tests.http.frames import Request, read_answer_body, read_head, read_request_body
from tests.servers import proxied, proxy

_MOST: Final = 1 << 16


class Proxy(proxy.Proxy[Request]):
    """Stands before the serving process at a URL; once it is entered, `url` leads there through it.

    What `fail` takes is the status of the refusal, which the process gives by itself: `404`.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, port=80)

    def proxied(self, streams: proxied.Streams) -> "ProxiedClient":
        return ProxiedClient(self, streams)


class ProxiedClient(proxied.ProxiedClient[Request]):
    """One connection through the proxy, to be held or reset alone."""

    @property
    def waits(self) -> bool:
        """Whether a request was passed on that is not answered yet."""
        return bool(self._expected)

    def failing(self, error: str) -> bytes:
        assert error == "404", "this is all that can be asked for"
        return b"GET /api/v1/nothing HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"

    async def requests(self) -> None:
        while head := await read_head(self.reader):
            body = await read_request_body(self.reader, head)
            method, target, _ = head.words
            request = Request(method.decode(), target.decode(), head.headers, body, id(self))
            if request.runs:
                await self.request(request, head.whole + body)
            else:
                await self.pass_on(head.whole + body)

    async def answers(self) -> None:
        while head := await read_head(self.server_reader):
            if head.announces:
                await self.give(head.whole)
            elif head.is_stream:
                await self._stream(head.whole)
            else:
                body = await read_answer_body(self.server_reader, head)
                await self.answer(head.whole + body, ends=True)

    async def _stream(self, piece: bytes) -> None:
        while piece:
            await self.give(piece)
            piece = await self.server_reader.read(_MOST)
