"""Jobs that go to another store, or come from one."""

from collections.abc import Iterable
from datetime import datetime

from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.moving import HeldKey, Moved, Packed, Parcel, Unpacked
from windlass.core.states import State
from windlass.core.unique import Hold
from windlass.kit.job_ids import check_repeats
from windlass.kit.moves.holds import Holds
from windlass.kit.moves.record import Record, record_of
from windlass.kit.moves.table import Table


def goes_by(moved: Moved | None, move: str | None) -> bool:
    """Whether what another store has may be let go of: by this move, or by whoever names none."""
    return move is None or (moved is not None and moved.move == move)


def pack(holds: Holds, records: Iterable[Record], now: datetime) -> Packed:
    """Return these jobs, which wait, with the keys that they hold."""
    chosen = list(records)
    keys = [holds.key_of(record, now) for record in chosen]
    return Packed([record.whole_job() for record in chosen], [key for key in keys if key is not None])


def is_next(parcel: Parcel, last: Unpacked | None) -> bool:
    """Whether a parcel follows the last one of its move and queue, or is the first."""
    return parcel.number == (1 if last is None else last.number + 1)


def unpack(table: Table, packed: Packed, now: datetime) -> None:
    """Put jobs in line as they are; those that are here already are passed by.

    Raises `IdConflict` before anything is written when another job has one of the ids.
    """
    check_repeats(packed.jobs, {job.id: table.jobs[job.id] for job in packed.jobs if job.id in table.jobs})
    keys = {key.job_id: key for key in packed.keys}
    for job in packed.jobs:
        if job.id not in table.jobs:
            _unpack(table, job, keys.get(job.id), now)


def _unpack(table: Table, job: Job, key: HeldKey | None, now: datetime) -> None:
    record = record_of(job, None if key is None else _hold(job, key))
    if key is not None and not table.holds.take_over(key, now):
        record.hold = record.unique_key = None
    table.take_in(record)
    # one that has come due meanwhile is promoted by the next claim, as any other
    state = State.SCHEDULED if job.state is State.SCHEDULED else State.PENDING
    table.starts_waiting(record, state, now, is_new=True)


def _hold(job: Job, key: HeldKey) -> Hold:
    """Return the hold of a job that has its key; how it would meet the key of another is of no use any more."""
    hold_for = None if key.expires_at is None else key.expires_at - job.created_at
    return Hold(key.name, job.unique_key or key.name.rpartition("|")[2], key.until, hold_for, "keep", False, key.digest)  # noqa: FBT003 - as the tuple has it


def let_go(table: Table, job_id: JobId) -> None:
    """Forget a job that waits, with the key that it holds, also one that time alone would free."""
    record = table.jobs.get(job_id)
    if record is None or not record.state.waiting:
        return
    if record.hold is not None and table.holds.held_by(record):
        table.holds.let_go(record.hold.name)
    table.remove(record)
