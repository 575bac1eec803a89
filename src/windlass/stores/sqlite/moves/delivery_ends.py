"""How a delivery ends for its job: it is over, or it waits again."""

from typing import Final

from windlass.core.job import Failure
from windlass.core.names import HISTORY_KEPT, MAX_ERROR, shortened
from windlass.core.states import State
from windlass.kit.unique_keys import Kept
from windlass.stores.sqlite.moves import steps
from windlass.stores.sqlite.moves.holds import free_at_end
from windlass.stores.sqlite.rows import EARLIEST, LATEST, Standing
from windlass.stores.sqlite.transaction import Transaction

NO_FAILURE: Final = (None, None, None, None)


def finish(
    tx: Transaction,
    job: Standing,
    state: State,
    *,
    keep: bool,
    error: str | None = None,
    result: bytes | None = None,
    codec: str | None = None,
    forget_token: bool = False,
) -> None:
    """End a running job in `state`; its record stays, or goes with it."""
    free_at_end(tx, job.id, job.hold, job.hold_until)
    if keep:
        _write_end(tx, job, state, error=error, result=result, codec=codec, token=None if forget_token else job.token)
    else:
        forget(tx, job.seq)
    jobs = steps.group_of(job)
    steps.stops_running(tx, jobs)
    steps.ends(tx, jobs, state, keep=keep)


def _write_end(
    tx: Transaction,
    job: Standing,
    state: State,
    *,
    error: str | None,
    result: bytes | None,
    codec: str | None,
    token: str | None,
) -> None:
    tx.run(
        "finish",
        {
            "seq": job.seq,
            "state": str(state),
            "now": tx.now,
            "last_error": None if error is None else shortened(error, MAX_ERROR),
            "result": result,
            "result_codec": codec,
            "token": token,
        },
    )


def wait_again(
    tx: Transaction,
    job: Standing,
    state: State,
    run_at: int,
    kept: Kept,
    *,
    attempt: int | None = None,
    error: str | None = None,
    forget_token: bool = False,
) -> None:
    """Put a running job back in line."""
    tx.run(
        "wait_again",
        {
            "seq": job.seq,
            "state": str(state),
            "attempt": job.attempt if attempt is None else attempt,
            "run_at": run_at,
            "last_error": None if error is None else shortened(error, MAX_ERROR),
            "token": None if forget_token else job.token,
            "unique_key": kept.unique_key,
            "hold": kept.hold,
            "hold_until": kept.hold_until,
        },
    )
    jobs = steps.group_of(job)
    steps.stops_running(tx, jobs)
    steps.starts_waiting(tx, jobs, state)


def write_delivery(tx: Transaction, job: Standing, outcome: str, failure: Failure | None = None) -> None:
    """Keep how this delivery ended; the last twenty are kept."""
    # a damaged time of the claim would make this entry damaged too
    started_at = job.claimed_at if job.claimed_at is not None and EARLIEST <= job.claimed_at <= LATEST else tx.now
    row = (job.seq, job.delivery, job.attempt, started_at, tx.now, job.worker, outcome)
    tx.run("write_delivery", (*row, *(failure or NO_FAILURE), None))
    if job.delivery > HISTORY_KEPT:
        tx.run("forget_old_deliveries", {"seq": job.seq, "last": job.delivery - HISTORY_KEPT})


def note_retry(tx: Transaction, job: Standing) -> None:
    """Write that an operator retries a job, which is still as it ended."""
    if job.delivery:
        tx.run("note_retry", {"seq": job.seq, "delivery": job.delivery, "now": tx.now})
    else:
        # a damaged time of the end would make this entry damaged too
        parameters = {"seq": job.seq, "now": tx.now, "earliest": EARLIEST, "latest": LATEST}
        tx.run("note_first_retry", parameters)


def forget(tx: Transaction, seq: int) -> None:
    """Delete a job and all that is kept with it."""
    tx.run("forget", {"seq": seq})
    forget_traces(tx, seq)


def forget_traces(tx: Transaction, seq: int) -> None:
    """Delete what is kept beside a job."""
    tx.run("forget_deliveries", {"seq": seq})
    tx.run("forget_log", {"seq": seq})
