"""How a delivery ends for its job: it is over, or it waits again."""

from windlass.core.job import Failure
from windlass.core.names import HISTORY_KEPT, MAX_ERROR, shortened
from windlass.core.states import State
from windlass.kit.unique_keys import Kept
from windlass.stores.sqlite.moves.holds import free_at_end
from windlass.stores.sqlite.rows import Standing
from windlass.stores.sqlite.transaction import Transaction


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
    tx.moved(job.queue, State.RUNNING, state if keep else None)
    if not keep:
        forget(tx, job.seq)
        return
    tx.run(
        "finish",
        {
            "seq": job.seq,
            "state": str(state),
            "now": tx.now,
            "error": None if error is None else shortened(error, MAX_ERROR),
            "result": result,
            "codec": codec,
            "token": None if forget_token else job.token,
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
            "error": None if error is None else shortened(error, MAX_ERROR),
            "token": None if forget_token else job.token,
            **kept._asdict(),
        },
    )
    tx.moved(job.queue, State.RUNNING, state)
    tx.ready(job.queue)


def write_delivery(tx: Transaction, job: Standing, outcome: str, failure: Failure | None = None) -> None:
    """Keep how this delivery ended; the last twenty are kept."""
    message, kind, traceback = failure or (None, None, None)
    row = (job.seq, job.delivery, job.attempt, job.claimed_at, tx.now, job.worker, outcome, message, kind, traceback)
    tx.run("write_delivery", row)
    if job.delivery > HISTORY_KEPT:
        tx.run("forget_old_deliveries", (job.seq, job.delivery - HISTORY_KEPT))


def forget(tx: Transaction, seq: int) -> None:
    """Delete a job and all that is kept with it."""
    tx.run("forget", (seq,))
    forget_traces(tx, seq)


def forget_traces(tx: Transaction, seq: int) -> None:
    """Delete what is kept beside a job."""
    tx.run("forget_deliveries", (seq,))
    tx.run("forget_log", (seq,))
