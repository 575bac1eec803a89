"""Plain successes, many in one statement: the hot half of every queue's life."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.core.requests import Settlement
from windlass.stores.postgres.moves import steps
from windlass.stores.postgres.moves.receipts import names_of, receipt, reply_of
from windlass.stores.postgres.rows import possible_token
from windlass.stores.postgres.work import Changes, Statement, Work, run


def ack_many(
    changes: Changes, settlements: Sequence[Settlement], request_id: str, *, patience: str
) -> Work[set[JobId]]:
    """Settle plain successes of different jobs, all kept or all forgotten; return the jobs that were.

    Those that were not are left to be refused by themselves. It fails when one of them stays locked for `patience`
    milliseconds.
    """
    ids = [settlement.job_id for settlement in settlements]
    tokens = [possible_token(settlement.token) for settlement in settlements]
    name = "ack" if settlements[0].keep else "ack_and_forget"
    parameters = {
        "now": changes.now,
        "request_id": request_id,
        "ids": ids,
        "tokens": tokens,
        "lock_timeout": patience,
    }
    # its text has both steps; a job that others follow is not done by it
    ack = steps.stops_running(changes, (), steps.ends(changes, (), run(Statement(name, parameters))))
    [(done,)] = yield from ack
    return set(ids if done is None else done)


def acked_before(settlements: Sequence[Settlement], request_id: str) -> Work[set[JobId]]:
    """Return what `ack_many` answered to this request, which was done."""
    kept = yield from receipt(request_id)
    if kept is not None and kept.reply is not None:
        return set(reply_of(request_id, kept.reply, names_of))
    return {settlement.job_id for settlement in settlements}
