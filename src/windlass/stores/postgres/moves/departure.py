"""Departure: a store whose jobs go elsewhere is marked, and begins nothing new.

Whatever begins something looks at the mark in the statement that writes, or in a later one of its transaction. By then
it holds the lock of a writer on a table of `beginners.sql`. So whoever has set the mark, and then waits for those that
hold such a lock, knows that all others see it. Nobody has to take a lock of its own for that.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

import msgspec

from windlass.core.commands import SetMoved
from windlass.core.errors import JobConflict, StoreMoved
from windlass.core.moving import Moved
from windlass.core.queries import GetMoved
from windlass.core.topics import PAUSES
from windlass.kit.moves import moving
from windlass.stores.postgres.moves.marks import PREPARED
from windlass.stores.postgres.rows import json_text, plain_text
from windlass.stores.postgres.work import Changes, Statement, Work

T = TypeVar("T")

_decoder = msgspec.json.Decoder(Moved)


class Beginner(NamedTuple):
    """A transaction under way that may have begun something; the columns of `beginners.sql`."""

    name: str
    pid: int | None
    user: str | None
    application: str | None
    state: str | None
    since: datetime | None

    def __str__(self) -> str:
        """Tell a person who that is."""
        if self.pid is None:
            return "a prepared transaction (see pg_prepared_xacts)"
        since = f" since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        application = self.application or "without a name"
        return (
            f"process {self.pid} (user {self.user or 'hidden'}, application {application}, "
            f"{self.state or 'in a transaction'}{since})"
        )


def moved(changes: Changes, query: GetMoved) -> Work[Moved | None]:
    """Return where the jobs of this store went."""
    del changes, query
    return (yield from moved_to())


def moved_to() -> Work[Moved | None]:
    """Return where the jobs of this store went; None while it takes jobs."""
    rows = yield Statement("moved")
    return _decoder.decode(rows[0][0]) if rows else None


def goes_by(move: str | None) -> Work[bool]:
    """Return whether what another store has may be let go of; if so, that stays so until this is committed."""
    if move is None:
        return True
    rows = yield Statement("moved_held")
    return moving.goes_by(_decoder.decode(rows[0][0]) if rows else None, move)


def set_moved(changes: Changes, command: SetMoved) -> Work[None]:
    """Set the mark, or take it away; it holds for all once this is committed and the `beginners` have ended."""
    to = command.moved
    text = "" if to is None else json_text(Moved(plain_text(to.to), plain_text(to.move)))
    yield Statement("set_moved", {"moved": text})
    changes.topics.add(PAUSES)


def beginners() -> Work[list[Beginner]]:
    """Return the transactions under way that may have begun something, the oldest first."""
    rows = yield Statement("beginners")
    return [Beginner(*row) for row in rows]


def still_under_way(before: Iterable[Beginner], now: Sequence[Beginner]) -> list[Beginner]:
    """Return which of `before` have not ended, by what is under way `now`."""
    names = {one.name for one in before}
    # after a restart a prepared transaction has another name, and may be any of them
    return [one for one in now if one.name in names or one.name.startswith(PREPARED)]


def refuse_if(text: str | None) -> None:
    """Raise `StoreMoved` if `text`, which a statement has found, says where the jobs went."""
    if text:
        raise StoreMoved(_decoder.decode(text).to)


def refuse_if_moved() -> Work[None]:
    """Raise `StoreMoved` in a store that was moved; what was written before this must be undone then."""
    rows = yield Statement("moved")
    refuse_if(rows[0][0] if rows else None)


def refuse_here_if_moved() -> Work[None]:
    """Raise `StoreMoved` as `refuse_if_moved`, in a caller's own transaction, whatever that sees."""
    rows = yield Statement("moved_here")
    refuse_if(rows[0][0] if rows else None)


def or_moved(work: Work[T]) -> Work[T]:
    """Do `work`; in a store that was moved its refusal of an id or a key is none."""
    try:
        return (yield from work)
    except JobConflict:
        yield from refuse_if_moved()
        raise
