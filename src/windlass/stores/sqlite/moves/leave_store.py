"""To leave this store for another one: the mark, and letting go of what is over there."""

from collections.abc import Sequence
from typing import NamedTuple

from windlass.core.ids import JobId
from windlass.core.moving import Moved
from windlass.core.topics import PAUSES
from windlass.kit.moves.moving import goes_by
from windlass.kit.records import STATES
from windlass.stores.sqlite import moving_looks
from windlass.stores.sqlite.moves import ends, schedules
from windlass.stores.sqlite.moves.enqueue import write_kv
from windlass.stores.sqlite.rows import json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction


class LetGoCall(NamedTuple):
    """What another store has now, by which move; keys by the names of their holds."""

    move: str | None
    jobs: Sequence[JobId]
    keys: Sequence[str]
    kv: Sequence[bytes]
    schedules: Sequence[str]


def set_moved(tx: Transaction, calls: list[Moved | None]) -> list[None]:
    """Let the store take nothing new, or let it take jobs again."""
    for moved in calls:
        tx.run("forget_moved", ())
        if moved is not None:
            tx.run("write_moved", moved)
        tx.set_taking(takes=moved is None)
        tx.topics.add(PAUSES)
    return [None] * len(calls)


def let_go(tx: Transaction, calls: list[LetGoCall]) -> list[bool]:
    """Forget what another store has."""
    return [_let_go(tx, call) for call in calls]


def _let_go(tx: Transaction, call: LetGoCall) -> bool:
    if not goes_by(moving_looks.moved(tx.cursor), call.move):
        return False
    _let_go_jobs(tx, call.jobs)
    for name in call.keys:
        tx.run("forget_hold", (name,))
    write_kv(tx, dict.fromkeys(call.kv))
    schedules.remove(tx, list(call.schedules))
    return True


def _let_go_jobs(tx: Transaction, ids: Sequence[JobId]) -> None:
    for seq, job_id, queue, state, hold in tx.execute(sql("waiting"), (json_list(list(ids)),)).fetchall():
        ends.forget(tx, seq)
        if hold is not None:
            tx.run("free_hold", (hold, job_id))
        tx.moved(queue, STATES[state], None)
