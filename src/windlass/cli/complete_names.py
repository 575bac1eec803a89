"""Names in the store, for a shell that completes what is typed: quickly, or not at all."""

import asyncio
import contextlib
import io
import logging
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Final

import click
from click.shell_completion import CompletionItem

from windlass.cli.reach import Choice, outside, reached
from windlass.core.errors import WindlassError
from windlass.core.store import Store

PATIENCE: Final = 0.3
"""Seconds after which whoever types goes on without us."""


def complete_queues(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the queues that begin so."""
    del param
    return _begin(_in_time(ctx, _queues), incomplete)


def complete_kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the kinds that servers know and that begin so."""
    del param
    return _begin(_in_time(ctx, _kinds), incomplete)


def complete_schedules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the schedules whose ids begin so."""
    del param
    return _begin(_in_time(ctx, _schedules), incomplete)


async def _queues(store: Store) -> list[str]:
    return [row.queue for row in await store.stats() if row.queue is not None]


async def _kinds(store: Store) -> list[str]:
    return sorted({kind for server in await store.servers() for kind in server.kinds})


async def _schedules(store: Store) -> list[str]:
    return [each.id for each in (await store.schedules()).schedules]


def _begin(names: list[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _in_time(ctx: click.Context, look: Callable[[Store], Awaitable[list[str]]]) -> list[str]:
    """Return what a look finds within the time; nothing when there is no store, or it is slow, or it fails."""
    found: list[str] = []
    choice = Choice(None, ctx.params.get("url"))

    def work() -> None:
        with contextlib.suppress(WindlassError, OSError, RuntimeError):
            found.extend(asyncio.run(_look(choice, look)))

    # a thread of its own: some stores block while they connect, and nobody waits for their end
    thread = threading.Thread(target=work, daemon=True)
    with _silence():
        thread.start()
        thread.join(PATIENCE)
    return list(found)


@contextlib.contextmanager
def _silence() -> Generator[None]:
    before = logging.root.manager.disable
    logging.disable()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


async def _look(choice: Choice, look: Callable[[Store], Awaitable[list[str]]]) -> list[str]:
    if outside(choice).value("url") is None:
        # an app could tell, and would have to be run for it
        return []
    async with asyncio.timeout(PATIENCE), reached(choice) as (client, _):
        return await look(client.store)
