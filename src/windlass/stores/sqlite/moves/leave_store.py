"""To leave this store for another one: the mark, and letting go of what is over there."""

from collections.abc import Sequence

from windlass.core.commands import DeleteMoved, RemoveSchedule, SetMoved
from windlass.core.ids import JobId
from windlass.core.topics import PAUSES
from windlass.kit.moves.moving import goes_by
from windlass.kit.records import STATES
from windlass.stores.sqlite.moves import delivery_ends, schedules
from windlass.stores.sqlite.moves.enqueue import write_kv
from windlass.stores.sqlite.rows import json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.store_move_queries import moved_to
from windlass.stores.sqlite.transaction import Transaction


def set_moved(tx: Transaction, command: SetMoved) -> None:
    """Let the store take nothing new, or let it take jobs again."""
    tx.run("forget_moved", ())
    if command.moved is not None:
        tx.run("write_moved", {"destination": command.moved.to, "move": command.moved.move})
    tx.set_taking(takes=command.moved is None)
    tx.topics.add(PAUSES)


def let_go(tx: Transaction, command: DeleteMoved) -> bool:
    """Delete what another store has."""
    if not goes_by(moved_to(tx.cursor), command.move):
        return False
    _let_go_jobs(tx, command.jobs)
    for name in command.keys:
        tx.run("forget_hold", {"name": name})
    write_kv(tx, dict.fromkeys(command.kv))
    for schedule_id in command.schedules:
        schedules.remove(tx, RemoveSchedule(schedule_id))
    return True


def _let_go_jobs(tx: Transaction, ids: Sequence[JobId]) -> None:
    rows = tx.execute(sql("waiting"), {"ids": json_list(list(ids))}).fetchall()
    for seq, job_id, queue, state, hold in rows:
        delivery_ends.forget(tx, seq)
        if isinstance(hold, str):
            tx.run("free_hold", {"name": hold, "job_id": job_id})
        tx.moved(queue, STATES[state], None)
