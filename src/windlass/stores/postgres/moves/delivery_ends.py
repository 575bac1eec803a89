"""How deliveries end for their jobs: they are over, or they wait again."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from windlass.core.job import Failure
from windlass.core.names import HISTORY_KEPT, MAX_ERROR, shortened
from windlass.core.states import State
from windlass.kit.unique_keys import Kept
from windlass.stores.postgres.moves import steps
from windlass.stores.postgres.moves.holds import free_at_end
from windlass.stores.postgres.moves.marks import keep_marks_below
from windlass.stores.postgres.rows import Standing, plain_text
from windlass.stores.postgres.work import Changes, Many, Statement, Work, run

NO_FAILURE: Final = (None, None, None, None)


class Ending(NamedTuple):
    """A running job that ends in `state`; its record stays, or goes with it."""

    job: Standing
    state: State
    keep: bool
    error: str | None = None
    result: bytes | None = None
    codec: str | None = None
    forget_token: bool = False


class Waiting(NamedTuple):
    """A running job that waits again, `delay` from now or, with none, at its old place."""

    job: Standing
    state: State
    delay: timedelta | None
    kept: Kept
    attempt: int
    error: str | None = None
    forget_token: bool = False


class Ended(NamedTuple):
    """How one delivery ended."""

    job: Standing
    outcome: str
    failure: Failure | None = None


def finish_many(changes: Changes, endings: Sequence[Ending]) -> Work[None]:
    """End running jobs."""
    if not endings:
        return
    jobs = [ending.job for ending in endings]
    yield from free_at_end(jobs)
    for ending in endings:
        changes.moved(ending.job.queue, State.RUNNING, ending.state if ending.keep else None)
    yield from steps.stops_running(changes, jobs, steps.ends(changes, jobs, _finish(changes, endings)))


def _finish(changes: Changes, endings: Sequence[Ending]) -> Work[None]:
    kept = [_finished(changes, ending) for ending in endings if ending.keep]
    if kept:
        yield Many("finish", kept)
    yield from forget([ending.job.seq for ending in endings if not ending.keep])


def wait_again_many(changes: Changes, waiting: Sequence[Waiting]) -> Work[None]:
    """Put running jobs back in line."""
    if not waiting:
        return
    yield from keep_marks_below([one.job for one in waiting if one.delay is None])
    jobs = [one.job for one in waiting]
    wait_again = run(Many("wait_again", [_waiting(changes, one) for one in waiting]))
    yield from steps.stops_running(changes, jobs, steps.starts_waiting(changes, jobs, wait_again))
    for one in waiting:
        changes.moved(one.job.queue, State.RUNNING, one.state)


def write_deliveries(changes: Changes, ended: Sequence[Ended]) -> Work[None]:
    """Keep how deliveries ended; the last twenty of each job are kept."""
    if not ended:
        return
    yield Many("write_delivery", [_delivery(changes, *one) for one in ended])
    old = [
        {"seq": job.seq, "delivery": job.delivery - HISTORY_KEPT} for job, _, _ in ended if job.delivery > HISTORY_KEPT
    ]
    if old:
        yield Many("forget_old_deliveries", old)


def forget(seqs: Sequence[int]) -> Work[None]:
    """Delete jobs and all that is kept with them."""
    if seqs:
        yield Statement("forget", {"seqs": seqs})


def _finished(changes: Changes, ending: Ending) -> dict[str, object]:
    """Return the parameters of `finish.sql`."""
    return {
        "now": changes.now,
        "seq": ending.job.seq,
        "state": str(ending.state),
        "last_error": _error(ending.error),
        "result": ending.result,
        "result_codec": ending.codec,
        "token": None if ending.forget_token else ending.job.token,
    }


def _waiting(changes: Changes, one: Waiting) -> dict[str, object]:
    """Return the parameters of `wait_again.sql`."""
    return {
        "now": changes.now,
        "seq": one.job.seq,
        "state": str(one.state),
        "delay": one.delay,
        "attempt": one.attempt,
        "last_error": _error(one.error),
        "unique_key": one.kept.unique_key,
        "hold": one.kept.hold,
        "hold_until": one.kept.hold_until,
        "token": None if one.forget_token else one.job.token,
    }


def _delivery(changes: Changes, job: Standing, outcome: str, failure: Failure | None) -> dict[str, object]:
    """Return the parameters of `write_delivery.sql`."""
    message, kind, traceback, module = (None if part is None else plain_text(part) for part in failure or NO_FAILURE)
    return {
        "now": changes.now,
        "seq": job.seq,
        "delivery": job.delivery,
        "attempt": job.attempt,
        "started_at": job.claimed_at,
        "worker": job.worker,
        "outcome": outcome,
        "message": message,
        "type": kind,
        "traceback": traceback,
        "module": module,
    }


def _error(text: str | None) -> str | None:
    return None if text is None else plain_text(shortened(text, MAX_ERROR))
