"""What is no server, but answers as one that is not at hand: too old, or one that tells little."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from tests.redis.frames import read_value


@asynccontextmanager
async def a_server_that_says(answers: Mapping[bytes, bytes]) -> AsyncGenerator[str]:
    """Give the URL of what answers each script by its digest, and each command by its name, as it is told to.

    All others it answers with OK.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        with suppress(ConnectionError):
            while value := await read_value(reader):
                name, digest = (*value.texts, b"")[:2]
                writer.write(answers.get(digest) or answers.get(name.upper(), b"+OK\r\n"))
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    serving: list[asyncio.Task[None] | None] = []
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0?timeout=2"
        await asyncio.wait([task for task in serving if task is not None])


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


NOTHING: Final = bulk(b"\xc0")
LAYOUT: Final = bulk(b"\x01")
