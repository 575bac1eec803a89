"""A look at the server before the first job: its version, that of the layout, and whether it forgets jobs."""

import asyncio
from typing import Final, cast

import msgspec

from windlass.core.errors import SchemaMissing, SchemaTooNew, StoreUnavailable
from windlass.core.migrating import Standing
from windlass.stores.redis.durability import facts_of, information, line_of, logger, tell, told_by
from windlass.stores.redis.keys import LAYOUT
from windlass.stores.redis.options import Options, Place
from windlass.stores.redis.runner import Runner

OLDEST: Final = (7, 0)


async def prepare(runner: Runner, prefix: str, options: Options) -> None:
    """Refuse a server that cannot hold a queue, and write the version of the layout where there is none."""
    # in a Cluster this finds the node that has the keys: it is the one to be looked at
    version = await layout(runner, prefix, create=False)
    info = await information(runner, prefix)
    _check(info, options)
    if version is None and options.create:
        version = await layout(runner, prefix, create=True)
    if version is None:
        message = (
            f"{options.where} has no Windlass store, and ?create=no forbids making one: run `windlass migrate` without "
            "it"
        )
        raise SchemaMissing(message)
    if version > LAYOUT:
        raise SchemaTooNew(options.where, version, LAYOUT)
    await tell(runner, prefix, info, options.where)
    runner.inspect(Inspection(options, info).look)


class Vouching:
    """Refuses servers that cannot hold a queue, where each queue may be on another one."""

    def __init__(self, runner: Runner, options: Options) -> None:
        """Know of none."""
        self._runner = runner
        self._options = options
        self._looked_at: set[Place] = set()

    async def vouch(self, prefix: str) -> None:
        """Look at the server that has the keys of `prefix`, unless that was done."""
        # by this the node is found that has the keys
        await layout(self._runner, prefix, create=False)
        place = await self._runner.place(prefix, asyncio.get_running_loop().time() + self._runner.patience)
        if place not in self._looked_at:
            _check(await information(self._runner, prefix), self._options)
            self._looked_at.add(place)


class Inspection:
    """Looks at servers that are connected to later: one that took over or was started again may have other settings."""

    def __init__(self, options: Options, info: dict[str, str]) -> None:
        """Know the server that was looked at first, by what it tells."""
        self._options = options
        self._seen = {info.get("run_id")}

    def look(self, text: bytes) -> None:
        """Refuse a server as at the open, unless it was seen before; warn where jobs may be lost."""
        info = facts_of(text)
        run_id = info.get("run_id")
        if run_id in self._seen:
            return
        _check(info, self._options)
        forgets = told_by(info).when_full
        if forgets is not None:
            logger.warning("%s: %s", self._options.where, line_of(forgets))
        self._seen.add(run_id)


def _check(info: dict[str, str], options: Options) -> None:
    """Refuse a server that is too old, or that forgets when its memory is full."""
    found = tuple(map(int, info.get("redis_version", "0.0").split(".")[:2]))
    if found < OLDEST:
        message = (
            f"{options.where} is version {info.get('redis_version')}: Redis 7 or Valkey 8, or a later one, is needed"
        )
        raise StoreUnavailable(message)
    forgets = told_by(info).when_full
    if forgets is not None and not options.evicting:
        message = (
            f"{options.where}: {forgets.message}: {forgets.advice}, or write ?evicting=allowed if that may be lost"
        )
        raise StoreUnavailable(message)


async def layout(runner: Runner, prefix: str, *, create: bool) -> int | None:
    """Return the version of the layout, which is written when there is none and `create` says so."""
    ask = {"layout": LAYOUT, "create": create}
    # who only looks waits for no replica
    reply = await (runner.run if create else runner.look)(prefix, "layout", ask)
    return cast("int | None", msgspec.msgpack.decode(reply))


async def standing(runner: Runner, prefix: str, options: Options) -> Standing:
    """Return where the layout of a store stands."""
    found = await layout(runner, prefix, create=False)
    return Standing(options.where, found, LAYOUT, tuple(range((found or 0) + 1, LAYOUT + 1)))
