"""Who owns a database: a record that its owner writes anew while it lives, and what it proves to others."""

import os
import socket
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Final
from uuid import uuid4

import msgspec

from windlass.core.errors import StoreCorrupt, StoreOwned
from windlass.kit.damage import DECODE_ERRORS
from windlass.stores.slatedb import engine_clock
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.doors import look_up
from windlass.stores.slatedb.faults import fenced
from windlass.stores.slatedb.keys import LAST, OWNER

OWNER_ALIVE: Final = timedelta(seconds=10)
"""How long an owner that was seen counts as alive, unless its process is proven to have ended."""
_PROC: Final = Path("/proc")
_ENDED: Final = frozenset({"Z", "X"})
_STATE, _START = 0, 19
_living: Final[set[str]] = set()
"""The ownerships of this process that it has not let go of."""


class Owner(msgspec.Struct, frozen=True):
    """A process that owns a database since some time, as it was seen last.

    `ownership` is a name that no other has, and empty in records of before. `machine` is the same for processes that
    see the same process ids, and empty where that cannot be known. `started` tells two processes with one id apart.
    """

    name: str
    host: str
    pid: int
    machine: str
    started: str | None
    since: Annotated[datetime, msgspec.Meta(tz=True)]
    seen_at: Annotated[datetime, msgspec.Meta(tz=True)]
    ownership: str = ""


_decoder: Final = msgspec.json.Decoder(Owner)


def here(now: datetime) -> Owner:
    """Return this process, as a new owner from `now` on."""
    host, pid = socket.gethostname(), os.getpid()
    return Owner(f"{host}:{pid}", host, pid, _machine(), started_of(pid), now, now, uuid4().hex)


def encode(owner: Owner) -> bytes:
    """Return the record of an owner."""
    return msgspec.json.encode(owner)


def decode(record: bytes) -> Owner:
    """Return the owner of a record; a field that a later release has added is not looked at."""
    return _decoder.decode(record)


async def check_free(address: Address, now: datetime, mine: str = "", *, again: bool = False) -> str:
    """Raise `StoreOwned` while another process owns the database at `address`, unless it is to be taken over.

    An ownership that is `mine` goes on; where it opens `again`, `Fenced` is raised if another came since. Returns the
    ownership before, if it is proven to have ended with its process, or let go; else nothing. Nothing is written. What
    keeps this process from the bucket, or from writing to it, is raised here, before anybody is fenced.
    """
    record, last = await look_up(address, OWNER, LAST)
    owner = None if record is None else _decoded(record, address)
    before = _before(record, owner, last)
    if again and before not in {"", mine}:
        raise fenced(address)
    if owner is not None and not address.take_over and is_alive(owner, now, mine):
        raise StoreOwned(owner.name, owner.since)
    engine_clock.check_clock(address, engine_clock.behind(last, None if owner is None else owner.seen_at))
    return before if owner is None or has_ended(owner) else ""


def _before(record: bytes | None, owner: Owner | None, last: bytes | None) -> str:
    """Return the ownership that is or was the last one; nothing where that is not known."""
    if owner is not None:
        return owner.ownership
    written = None if record is not None or last is None else engine_clock.decode(last)
    return "" if written is None else written.ownership


def _decoded(record: bytes, address: Address) -> Owner | None:
    """Return the owner of a record; None for one that cannot be read, which may be taken over."""
    try:
        return decode(record)
    except DECODE_ERRORS as error:
        if address.take_over:
            return None
        message = f"who owns {address.where} cannot be read: add ?take_over=1 if nobody does"
        raise StoreCorrupt(message) from error


def is_alive(owner: Owner, now: datetime, mine: str = "") -> bool:
    """Whether another owner counts as alive: it was seen lately, and is not proven to have ended."""
    seen = now - owner.seen_at < OWNER_ALIVE and not has_ended(owner)
    return seen and owner.ownership != mine and not (_is_this(owner) and owner.ownership not in _living)


def begin(owner: Owner) -> None:
    """Know an ownership of this process, until it lets go of it."""
    _living.add(owner.ownership)


def let_go(owner: Owner) -> None:
    """Know that this process has let go of an ownership, whether it could say so in the database or not."""
    _living.discard(owner.ownership)


def has_ended(owner: Owner) -> bool:
    """Whether the process of an owner is proven to have ended, or is this one, and has let go."""
    if not owner.machine or owner.machine != _machine() or owner.started is None:
        return False
    if _is_this(owner) and owner.started == started_of(owner.pid):
        return bool(owner.ownership) and owner.ownership not in _living
    state, started = _seen(owner.pid)
    if state is None:
        # those of other users may be hidden
        return not _exists(owner.pid)
    return state in _ENDED or started != owner.started


def _is_this(owner: Owner) -> bool:
    return owner.machine == _machine() and owner.host == socket.gethostname() and owner.pid == os.getpid()


@cache
def _machine() -> str:
    """Name this run of the machine and the part of it whose process ids this process sees."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def started_of(pid: int) -> str | None:
    """Return when a process started, in ticks of the machine; None where none is seen, or one that has ended."""
    state, started = _seen(pid)
    return None if state in _ENDED else started


def _exists(pid: int) -> bool:
    """Whether there may be a process, also one that this process is not shown."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # it is another user's
        return True
    return True


def _seen(pid: int) -> tuple[str, str] | tuple[None, None]:
    """Return state and start of a process, as far as this one is shown."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None, None
    # its name stands in brackets, and may hold anything
    fields = text.rpartition(")")[2].split()
    return fields[_STATE], fields[_START]
