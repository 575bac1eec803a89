"""How the engine is set: what it keeps in memory, and how it tidies up."""

import json
from typing import Final, NamedTuple

from slatedb.uniffi import DbCache, FoyerCacheOptions, ReaderOptions, Settings

from windlass.stores.slatedb.address import Address

_MIB: Final = 1 << 20
_SHARDS: Final = 2
_UNFLUSHED: Final = 32 * _MIB
_MOST_TABLES: Final = 16
"""Tables that were not merged yet: with more of them writes wait for the compactor."""


class _Sizes(NamedTuple):
    """Bytes that the engine holds at a time: cached of either kind, of a table, of a merged one, and read to merge."""

    cached: int
    table: int
    merged: int
    read: int


# each of them saves requests to a bucket, while a file that was just read or written is in the system's memory anyway
_IN_A_BUCKET: Final = _Sizes(cached=4 * _MIB, table=4 * _MIB, merged=16 * _MIB, read=_MIB)
_IN_A_FOLDER: Final = _Sizes(cached=2 * _MIB, table=2 * _MIB, merged=4 * _MIB, read=_MIB // 8)


def settings_of(address: Address) -> Settings:
    """Return the settings of whoever writes."""
    settings = Settings.default()
    for name, value in values_of(address).items():
        settings.set(name, json.dumps(value))
    return settings


def cache(address: Address) -> DbCache:
    """Return a small cache: the disk or the bucket has the rest, and what is new is in memory anyway."""
    size = _sizes(address).cached
    return DbCache.new_split_cache(_foyer(size), _foyer(size))


def flushes_to_a_table(address: Address) -> int:
    """Return after how many flushes what is in memory is written as a table.

    A database is opened by reading what was written since the last table, one object for each flush. The engine's own
    setting takes no fewer than 4096, which takes seconds to read.
    """
    return 250 if address.is_remote else 400


def reader_options(
    address: Address, *, once: bool = False, patient: bool = True, skip_wal: bool = False
) -> ReaderOptions:
    """Return the options of a reader that follows, or is used `once`; without patience it fails at the first fault."""
    poll = 3_600_000 if once else 1_000 if address.is_remote else 200
    return ReaderOptions(
        manifest_poll_interval_ms=poll,
        # it makes no checkpoint, and yet this must be more than twice the interval
        checkpoint_lifetime_ms=poll * 10,
        max_memtable_bytes=_sizes(address).table,
        skip_wal_replay=skip_wal,
        object_store_max_retries=None if patient else 0,
    )


def values_of(address: Address) -> dict[str, object]:
    """Return what is set otherwise than the engine has it."""
    remote, sizes = address.is_remote, _sizes(address)
    return {
        # the store flushes by itself, when it has something that must be durable
        "flush_interval": "60s",
        # an owner that has nothing to write learns by this that it is none any more
        "manifest_poll_interval": "1s" if remote else "500ms",
        "l0_sst_size_bytes": sizes.table,
        "l0_max_ssts": _MOST_TABLES,
        "l0_max_ssts_per_key": _MOST_TABLES,
        "l0_flush_parallelism": 1,
        "max_unflushed_bytes": _UNFLUSHED,
        "compactor_options.poll_interval": "5s" if remote else "1s",
        # What was deleted goes only when tables are merged, and is in the way until then. So two are merged as soon as
        # there are two, also when one is much smaller: the marks of what was deleted are smaller than what it was.
        "compactor_options.scheduler_options": {
            "min_compaction_sources": "2",
            "max_compaction_sources": "16",
            "include_size_threshold": "16",
        },
        # what a merge has replaced is kept for so long, for whoever reads it still
        "compactor_options.checkpoint_lifetime": "60s",
        "compactor_options.max_concurrent_compactions": 1,
        "compactor_options.worker.compactions_poll_interval": "5s" if remote else "1s",
        "compactor_options.worker.max_concurrent_compactions": 1,
        "compactor_options.worker.max_subcompactions": 1,
        "compactor_options.worker.max_fetch_tasks": 2,
        "compactor_options.worker.bytes_to_fetch": sizes.read,
        "compactor_options.worker.max_sst_size": sizes.merged,
        "garbage_collector_options.wal_fence_options.dry_run": True,
        # a file system cannot write over a file if it is as expected, which these files need: nothing would be removed
        "garbage_collector_options.boundary_files_enabled": address.kind != "file",
        **_garbage(remote=remote),
    }


def _garbage(*, remote: bool) -> dict[str, object]:
    """Return when what is not needed any more is removed.

    Marks that fence a former owner off (`wal_fence_options`) are never removed, as the engine has it: a process that
    was stopped for any time and goes on then must find the one at which it learns that it is fenced. Each opening
    leaves one, of no bytes.
    """
    found: dict[str, object] = {}
    # a table that is being made is in no manifest yet, and one that a reader reads may be in none any more
    ages = {"wal": "10s", "manifest": "120s", "compactions": "120s", "compacted": "60s"}
    for what, age in ages.items():
        found[f"garbage_collector_options.{what}_options.interval"] = "60s" if remote else "10s"
        found[f"garbage_collector_options.{what}_options.min_age"] = "60s" if remote else age
    return found


def _sizes(address: Address) -> _Sizes:
    return _IN_A_BUCKET if address.is_remote else _IN_A_FOLDER


def _foyer(size: int) -> DbCache:
    return DbCache.new_foyer_cache(FoyerCacheOptions(max_capacity=size, shards=_SHARDS))
