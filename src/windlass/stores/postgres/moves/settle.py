"""Settle: how claims ended, fenced by their tokens."""

from collections.abc import Sequence
from typing import TypeAlias, assert_never

import msgspec

from windlass.core.duration import ZERO
from windlass.core.errors import JobConflict, StoreUnavailable
from windlass.core.failpoint import reach
from windlass.core.ids import JobId
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.core.states import State
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded
from windlass.kit.settlements import KeptResult, failure_of, kept_result, result_of
from windlass.kit.unique_keys import after_attempt
from windlass.stores.postgres.moves import delivery_ends, holds
from windlass.stores.postgres.moves.delivery_ends import Ended, Ending, Waiting
from windlass.stores.postgres.moves.enqueue import insert_any, write_kv
from windlass.stores.postgres.moves.fence import Fence, Lock, fence
from windlass.stores.postgres.moves.receipts import receipt, reply_of, write_receipt
from windlass.stores.postgres.rows import Standing
from windlass.stores.postgres.work import CANCELLED, DEAD, RETRIED, SUCCEEDED, Changes, Statement, Work

_Kept: TypeAlias = str | list[str | bool | None]
"""One answer in a receipt, as JSON has it."""


def settle_once(
    changes: Changes, settlements: Sequence[Settlement], request_id: str, *, patience: str, free: bool = False
) -> Work[list[SettleResult]]:
    """Settle, and keep the answers for a caller who asks again.

    It fails when something that it needs stays locked for `patience` milliseconds. With `free` a job that is locked is
    not waited for, and is answered by a `StoreUnavailable`.
    """
    results = yield from (settle_free if free else settle_all)(changes, settlements, patience)
    yield from changes.flush()
    # where nothing but locks was met nothing was done, and whoever asks again is to be answered better
    if not results or not all(isinstance(result, StoreUnavailable) for result in results):
        yield from keep_answers(changes, request_id, results)
    return results


def keep_answers(changes: Changes, request_id: str, results: Sequence[SettleResult]) -> Work[None]:
    """Keep what a request was answered."""
    reply = msgspec.json.encode([_kept(result) for result in results]).decode()
    yield from write_receipt(changes, request_id, reply)


def settled_before(request_id: str) -> Work[list[SettleResult] | None]:
    """Return what `settle_once` answered to this request, if it was done."""
    kept = yield from receipt(request_id)
    if kept is None or kept.reply is None:
        return None
    return reply_of(request_id, kept.reply, _answers)


def settle_all(
    changes: Changes, settlements: Sequence[Settlement], patience: str | None = None
) -> Work[list[SettleResult]]:
    """Settle claims; each that brings jobs or values along is a step of its own, the others are written together."""
    fenced = yield from fence(_claims(settlements), Lock.WAIT, patience=patience)
    return (yield from _settle_these(changes, settlements, fenced))


def settle_free(changes: Changes, settlements: Sequence[Settlement], patience: str) -> Work[list[SettleResult]]:
    """Settle claims as `settle_all`, but for the jobs that somebody has locked."""
    going = {settlement.job_id for settlement in settlements if not settlement.keep}
    fenced = yield from fence(_claims(settlements), Lock.SKIP, going=going, patience=patience)
    return (yield from _settle_these(changes, settlements, fenced))


def _claims(settlements: Sequence[Settlement]) -> list[tuple[JobId, str]]:
    return [(settlement.job_id, settlement.token) for settlement in settlements]


def _settle_these(changes: Changes, settlements: Sequence[Settlement], fenced: Fence) -> Work[list[SettleResult]]:
    results: list[SettleResult] = []
    together: list[tuple[Standing, Settlement]] = []
    for settlement in settlements:
        job = fenced.held(settlement.job_id, settlement.token)
        if not isinstance(job, Standing):
            results.append(job or locked_out(settlement.job_id))
            continue
        # once: a second settlement of the same claim finds it settled
        fenced.write(job.id, _settled(job, settlement))
        if settlement.then or settlement.kv:
            yield from _write_verdicts(changes, together)
            together.clear()
            results.append((yield from _settle_with(changes, job, settlement)))
            if results[-1] is not Settled.DONE:
                fenced.write(job.id, job)
        else:
            together.append((job, settlement))
            results.append(Settled.DONE)
    yield from _write_verdicts(changes, together)
    return results


def _kept(result: SettleResult) -> object:
    return (str(result), result.retryable) if isinstance(result, StoreUnavailable) else kept_result(result)


def _answers(reply: str) -> list[SettleResult]:
    return [_answer(one) for one in msgspec.json.decode(reply, type=list[_Kept])]


def _answer(kept: _Kept) -> SettleResult:
    match kept:
        case [str() as text, bool() as retryable]:
            return StoreUnavailable(text, retryable=retryable)
        case _:
            return result_of(msgspec.convert(kept, KeptResult))


def locked_out(job_id: JobId) -> StoreUnavailable:
    """Return why nothing was written of the settlement of a job that somebody else has locked."""
    return StoreUnavailable(
        f"job {job_id} was not settled, since another transaction holds its row: end that one, which may be a "
        "ctx.transaction() or one with connection= that goes on (pg_stat_activity shows who is idle in transaction), "
        "then try again",
        retryable=True,
    )


def _settled(job: Standing, settlement: Settlement) -> Standing | None:
    """Return how a second settlement in the same call finds the job; None when it is gone."""
    ends_it = isinstance(settlement.verdict, ToSucceeded | ToDead | ToCancelled)
    return None if ends_it and not settlement.keep else job._replace(state_name=State.SUCCEEDED)


def _settle_with(changes: Changes, job: Standing, settlement: Settlement) -> Work[SettleResult]:
    """Settle one claim with what commits beside it, or nothing of it when a job it brings is refused."""
    mark = changes.mark()
    yield Statement("savepoint")
    try:
        yield from _write_verdicts(changes, [(job, settlement)])
        reach("postgres.settle.before_then")
        yield from insert_any(changes, settlement.then)
        yield from write_kv(settlement.kv)
    except JobConflict as conflict:
        yield Statement("back_to_savepoint")
        changes.back_to(mark)
        return conflict
    yield Statement("release_savepoint")
    return Settled.DONE


def _write_verdicts(changes: Changes, settled: Sequence[tuple[Standing, Settlement]]) -> Work[None]:
    """Write how claims ended, a few statements for all of them."""
    deliveries: list[Ended] = []
    endings: list[Ending] = []
    waiting: list[Waiting] = []
    released = [job for job, one in settled if isinstance(one.verdict, ToReleased) and not one.verdict.started]
    taken_back = dict(
        zip((job.id for job in released), (yield from holds.after_release(changes, released)), strict=True)
    )
    for job, (_, _, verdict, keep, _, _) in settled:
        match verdict:
            case ToSucceeded(result, codec):
                endings.append(Ending(job, State.SUCCEEDED, keep, result=result, codec=codec))
                changes.happened(job.queue, job.kind, SUCCEEDED)
            case ToDead(failure):
                deliveries.append(Ended(job, "failed", failure))
                endings.append(Ending(job, State.DEAD, keep, failure.summary))
                changes.happened(job.queue, job.kind, DEAD)
            case ToCancelled(reason):
                deliveries.append(Ended(job, "cancelled", failure_of(reason)))
                endings.append(Ending(job, State.CANCELLED, keep, reason))
                changes.happened(job.queue, job.kind, CANCELLED)
            case ToRetry(delay, failure):
                deliveries.append(Ended(job, "failed", failure))
                state = State.PENDING if delay == ZERO else State.SCHEDULED
                kept = after_attempt(job)
                waiting.append(Waiting(job, state, delay, kept, job.attempt, failure.summary))
                changes.happened(job.queue, job.kind, RETRIED)
            case ToSnoozed(delay):
                deliveries.append(Ended(job, "snoozed"))
                state = State.PENDING if delay == ZERO else State.SCHEDULED
                waiting.append(Waiting(job, state, delay, after_attempt(job), job.attempt - 1))
            case ToReleased():
                deliveries.append(Ended(job, "released"))
                kept = taken_back.get(job.id) or after_attempt(job)
                waiting.append(Waiting(job, State.PENDING, None, kept, job.attempt - 1))
            case _:
                assert_never(verdict)
    yield from delivery_ends.write_deliveries(changes, deliveries)
    yield from delivery_ends.wait_again_many(changes, waiting)
    yield from delivery_ends.finish_many(changes, endings)
