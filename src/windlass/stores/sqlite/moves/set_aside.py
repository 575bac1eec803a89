"""Damaged jobs: made dead with the reason, and what a careful transaction knows of a job."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.core.names import MAX_ERROR, shortened
from windlass.core.states import State
from windlass.kit.damage import Unreadable, dead_reason, shown
from windlass.kit.records import STATES
from windlass.stores.sqlite.damaged import logger
from windlass.stores.sqlite.moves import steps
from windlass.stores.sqlite.moves.holds import free_all_of
from windlass.stores.sqlite.rows import ClaimedRow, Standing, damage_of_claim, json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction

_OF_KEY: Final = ("unique_key", "hold", "hold_until")
_REPLACED: Final = ("kind", "worker", "token")
"""The columns of `Standing` that a call can do without."""


def set_aside_damaged(tx: Transaction, seqs: Sequence[int]) -> int:
    """Make those of some pending jobs dead that a claim cannot decode; return how many."""
    found = tx.execute(sql("looked_over"), {"seqs": json_list(list(seqs))}).fetchall()
    rows = [ClaimedRow(*row) for row in found]
    damaged = [(row, damage) for row in rows if (damage := damage_of_claim(row)) is not None]
    if not damaged:
        return 0
    free_all_of(tx, {row.seq: row.hold for row, _ in damaged})
    for row, damage in damaged:
        logger.error("job %s of queue %r was set aside as dead: %s", known_id(row.id, row.seq), row.queue, damage)
        _write_dead(tx, row.seq, damage)
        kind = row.kind if isinstance(row.kind, str) else None
        steps.ends(tx, steps.Group(row.queue, kind, State.PENDING, 1, (row.seq,)), State.DEAD, keep=True)
    return len(damaged)


def bury_damaged(tx: Transaction, seq: int, hold: object, damage: str) -> None:
    """Write a job as dead because of `damage`; the caller counts it."""
    free_all_of(tx, {seq: hold})
    _write_dead(tx, seq, damage)


def _write_dead(tx: Transaction, seq: int, damage: str) -> None:
    error = f"{dead_reason(damage)}{_former_error(tx, seq) if 'last_error is' in damage else ''}"
    tx.run("set_aside", {"seq": seq, "now": tx.now, "last_error": shortened(error, MAX_ERROR)})


def _former_error(tx: Transaction, seq: int) -> str:
    """Return the damaged error that is about to be overwritten, with its bytes written out."""
    stored: bytes = tx.row("last_error_bytes", {"seq": seq})[0] or b""
    return f". The stored last_error was: {stored.decode(errors='backslashreplace')}"


def known_id(job_id: object, seq: int) -> str:
    """Return how the log names a job, whose id may be damaged."""
    return job_id if isinstance(job_id, str) else f"with sequence number {seq}"


def standing_of(tx: Transaction, row: Sequence[Any]) -> Standing:
    """Return the job of a row of `standing.sql`; raises `StoreCorrupt` when what every call needs does not read."""
    job = Standing(*row)
    if not tx.careful:
        return job
    if damage := damage_of_standing(job):
        raise corrupt(job, damage)
    return without_unreadable(job)


def without_unreadable(job: Standing) -> Standing:
    """Return the job without what a call can do without and cannot read."""
    unknown: dict[str, Any] = {name: None for name in _unreadable(job) if name in _REPLACED}
    return job._replace(**unknown)


def corrupt(job: Standing, damage: str) -> StoreCorrupt:
    """Return the error for a call that cannot be done on a damaged job."""
    message = f"job {job.id} is damaged: {damage}. Nothing was done to it: repair its stored record, and call again"
    return StoreCorrupt(message, job_id=job.id)


def damage_of_standing(job: Standing) -> str:
    """Return what is damaged of that without which nothing can be done: the state."""
    if job.state_name in STATES:
        return ""
    return f"state {_unreadable(job).get('state_name') or f'is no state: {shown(job.state_name)}'}"


def damage_of_key(job: Standing) -> str:
    """Return what is damaged of that by which a job that waits again keeps its unique key."""
    unreadable = _unreadable(job)
    return "; ".join(f"{name} {unreadable[name]}" for name in _OF_KEY if name in unreadable)


def damage_of_lost(job: Standing) -> str:
    """Return what is damaged of a job whose lease ran out so that it cannot wait again."""
    unreadable = _unreadable(job)
    found = [f"id {unreadable['id']}" if "id" in unreadable else "", damage_of_standing(job), damage_of_key(job)]
    return "; ".join(filter(None, found))


def _unreadable(job: Standing) -> dict[str, str]:
    values: dict[str, object] = job._asdict()
    return {name: value.why for name, value in values.items() if isinstance(value, Unreadable)}


def standing(tx: Transaction, job_id: JobId) -> Standing | None:
    """Return what a move needs to know of a job; None when it is not here."""
    row = tx.row("standing", {"job_id": job_id})
    return None if row is None else standing_of(tx, row)
