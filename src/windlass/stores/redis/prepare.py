"""A look at the server before the first job: its version, that of the layout, and whether it forgets jobs."""

from typing import Final, cast

import msgspec

from windlass.core.errors import SchemaMissing, SchemaTooNew, StoreUnavailable
from windlass.core.migrating import Standing
from windlass.stores.redis.durability import information, tell, told_by
from windlass.stores.redis.keys import LAYOUT
from windlass.stores.redis.options import Options
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


def _check(info: dict[str, str], options: Options) -> None:
    """Refuse a server that is too old, or that forgets jobs."""
    found = tuple(map(int, info.get("redis_version", "0.0").split(".")[:2]))
    if found < OLDEST:
        message = (
            f"{options.where} is version {info.get('redis_version')}: Redis 7 or Valkey 8, or a later one, is needed"
        )
        raise StoreUnavailable(message)
    durability = told_by(info)
    if durability.evicts and not options.evicting:
        message = (
            f"{options.where} forgets jobs when its memory is full (maxmemory-policy {durability.eviction}): set it to "
            "noeviction, or write ?evicting=allowed if jobs may be lost"
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
