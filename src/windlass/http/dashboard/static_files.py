"""The files that pages load: style and scripts, named after what is in them, so that a browser may keep them."""

from hashlib import sha256
from importlib.resources import files
from typing import Final

from starlette.types import Receive, Scope, Send

from windlass.http.reply import Reply

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_KEEP: Final = {"Cache-Control": "public, max-age=31536000, immutable"}


class StaticFile:
    """An ASGI app that answers with one file."""

    def __init__(self, name: str, data: bytes) -> None:
        self._reply = Reply(200, data, _KEEP, _TYPES[name.rpartition(".")[2]])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        del scope, receive
        await self._reply.send(send)


class StaticFiles:
    """All files, read once. Their folder changes its name when one of them changes."""

    def __init__(self) -> None:
        found = files("windlass.http.dashboard") / "static"
        data = {each.name: each.read_bytes() for each in found.iterdir() if each.name.rpartition(".")[2] in _TYPES}
        mark = sha256(b"".join(name.encode() + content for name, content in sorted(data.items()))).hexdigest()[:16]
        self._folder = f"/static/{mark}"
        self.apps: Final = {f"{self._folder}/{name}": StaticFile(name, content) for name, content in data.items()}
        """Who answers, by path."""

    def path(self, name: str) -> str:
        """Return where a file is, below the path that the app is mounted at."""
        path = f"{self._folder}/{name}"
        if path not in self.apps:
            raise KeyError(name)
        return path
