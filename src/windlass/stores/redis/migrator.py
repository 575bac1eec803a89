"""Brings the layout of a store's keys up, for `windlass migrate`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from windlass.core.clock import Clock
from windlass.core.migrating import Standing, check_known
from windlass.core.topics import Hub
from windlass.kit.reaching import told_when_slow
from windlass.stores.redis.keys import LAYOUT, prefix_of
from windlass.stores.redis.options import Options
from windlass.stores.redis.prepare import prepare, standing
from windlass.stores.redis.runner import Runner


class RedisMigrator:
    """See `core.migrating.Migrator`. There is one layout so far, and it is made by writing its number."""

    def __init__(self, options: Options, clock: Clock) -> None:
        """Work on the server of `options`, as far as its URL allows it."""
        self._options = options
        self._clock = clock
        self._prefix = prefix_of(options.prefix)

    async def look(self) -> Standing:
        """Return where the layout stands."""
        async with self._runner() as runner:
            return await standing(runner, self._prefix, self._options)

    async def apply(self) -> Standing:
        """Bring the layout up."""
        async with self._runner() as runner:
            before = await standing(runner, self._prefix, self._options)
            await prepare(runner, self._prefix, self._options)
            return before

    def script(self, since: int) -> str:
        """Return the commands that bring a layout of version `since` up by hand."""
        check_known(since, LAYOUT)
        return "" if since == LAYOUT else f"HSET {self._prefix}meta layout {LAYOUT}\n"

    @asynccontextmanager
    async def _runner(self) -> AsyncGenerator[Runner]:
        runner = Runner(self._options, self._clock, Hub())
        try:
            with told_when_slow(self._options.where, self._options.timeout, lambda: runner.met):
                yield runner
        finally:
            await runner.close()
