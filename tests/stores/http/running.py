"""Runners against a server that answers as it is told, and errors as that tells them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.stores.http.scripted import Scripted
from windlass.core.errors import ClaimLost, OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.stores.http.runner import Runner


def told(body: bytes) -> WindlassError | None:
    """Read the body of a refusal as these tests write it: a word."""
    match body:
        case b"claim_lost":
            return ClaimLost("1")
        case b"outcome_unknown":
            return OutcomeUnknown("1")
        case b"busy":
            return StoreUnavailable("the store is busy", retryable=True)
        case _:
            return None


@asynccontextmanager
async def runner_of(
    server: Scripted, *, path: str = "", token: str | None = None, **given: str
) -> AsyncGenerator[Runner]:
    runner = Runner(server.options(path=path, token=token, **given), told)
    try:
        yield runner
    finally:
        server.over.set()
        await runner.close()


def sockets() -> set[str]:
    """Return the sockets that this process has open."""
    links = (str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    return {link for link in links if link.startswith("socket:")}


async def only(before: set[str], server: Scripted) -> None:
    """Return when no sockets are open but these, on both sides."""
    async with asyncio.timeout(20):
        while server.lines or not sockets() <= before:  # noqa: ASYNC110 - the system tells nobody
            await asyncio.sleep(0)


async def turns(number: int) -> None:
    """Let the event loop turn so often."""
    for _ in range(number):
        await asyncio.sleep(0)
