"""What `doctor` says about a database in a bucket, a folder or memory."""

from datetime import datetime, timedelta
from typing import Final

from windlass.core.looks import Finding
from windlass.core.queries import CheckStore
from windlass.core.queue_settings import SettingsRow
from windlass.core.states import State
from windlass.kit.damage import DECODE_ERRORS
from windlass.kit.moves.looking import of_move, of_settings
from windlass.stores.slatedb import engine_clock, keys, records
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.opening import LAYOUT
from windlass.stores.slatedb.owner import OWNER_ALIVE, decode, has_ended
from windlass.stores.slatedb.parcel_looks import read_moved
from windlass.stores.slatedb.queue_looks import NamedQueue, read_queues
from windlass.stores.slatedb.recount import Recount, recount
from windlass.stores.slatedb.view import ReadState, View

_TRIES: Final = 3
_SHOWN: Final = 3
_LAG_NOT_TOLD: Final = timedelta(seconds=1)


async def check(state: ReadState, query: CheckStore) -> list[Finding]:
    """Look over what is kept, by whom, and whether it agrees with itself."""
    del query
    view, now, address = state
    queues = await read_queues(view)
    return [
        _durability(address),
        await _owner(view, now),
        *await _clock(view),
        await _layout(view),
        await _counts(view, queues, follows=address.look),
        _jobs(queues),
        *of_settings((name, SettingsRow(*kept.kept_settings)) for name, kept in queues),
        *of_move(await read_moved(view)),
    ]


def _durability(address: Address) -> Finding:
    if address.kind == "memory":
        return Finding("durability", "ok", "slatedb+memory:// lives with its process: every job is gone when it ends")
    if address.kind == "file":
        return Finding(
            "durability",
            "warning",
            "slatedb+file:// survives the end of its process, but not a power cut: nothing is synced to disk",
            "use it for development and tests; sqlite:// keeps jobs on one machine, slatedb+s3:// in a bucket",
        )
    return Finding("durability", "ok", f"what was acknowledged is in the bucket {address.bucket}")


async def _owner(view: View, now: datetime) -> Finding:
    value = await view.get(keys.OWNER)
    if value is None:
        return Finding("owner", "ok", "no process owns it")
    try:
        owner = decode(value)
    except DECODE_ERRORS:
        return Finding(
            "owner",
            "error",
            "who owns it cannot be read",
            "if no process does, open it once with ?take_over=1, which writes it anew",
        )
    if now - owner.seen_at >= OWNER_ALIVE or has_ended(owner):
        return Finding("owner", "ok", f"no process owns it; {owner.name} did until {_shown(owner.seen_at)}")
    return Finding("owner", "ok", f"{owner.name} has owned it since {_shown(owner.since)}")


async def _clock(view: View) -> list[Finding]:
    lag = engine_clock.behind(await view.get(keys.LAST))
    if lag <= _LAG_NOT_TOLD:
        return []
    return [
        Finding(
            "clock of the owner",
            "warning",
            f"the clock of this machine is {lag.total_seconds():.0f} s behind that of the machine that wrote last",
            "set both by a time server: this machine cannot own the store before that time",
        )
    ]


def _shown(at: datetime) -> str:
    return at.isoformat(" ", "seconds")


async def _layout(view: View) -> Finding:
    value = await view.get(keys.LAYOUT)
    try:
        version = "none" if value is None else records.layout(value)
    except DECODE_ERRORS:
        return Finding("schema", "error", "the version of the layout cannot be read", "restore the store from a backup")
    return Finding("schema", "ok", f"version {version} of {LAYOUT}")


async def _counts(view: View, queues: list[NamedQueue], *, follows: bool) -> Finding:
    """Compare counts and jobs; a view that `follows` the owner is not of one moment, and may need another look."""
    found = await recount(view, queues)
    for _ in range(_TRIES if follows and found.differences else 0):
        found = await recount(view, await read_queues(view))
        if not found.differences:
            break
    return _counted(found, follows=follows)


def _counted(found: Recount, *, follows: bool) -> Finding:
    if not found.differences:
        bound = "" if found.whole else ", as far as they were counted"
        return Finding("counts", "ok", f"the counts of all queues agree with the jobs that are there{bound}")
    told = "; ".join(
        f"{queue} counts {counts:,} {state} jobs, {there:,} are there"
        for queue, state, counts, there in found.differences[:_SHOWN]
    )
    if follows:
        return Finding("counts", "warning", f"{told}: the owner may be at work", "look again when less is going on")
    return Finding("counts", "error", told, "restore the store from a backup, and report what happened before")


def _jobs(queues: list[NamedQueue]) -> Finding:
    count = sum(kept.standing(state) for _, kept in queues for state in State)
    return Finding("jobs", "ok", f"{count:,} jobs on {len(queues):,} queues")
