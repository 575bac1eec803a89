"""Settle: how claims ended, fenced by their tokens."""

from collections.abc import Sequence
from itertools import groupby, islice
from typing import assert_never

from windlass.core.commands import SettleClaims
from windlass.core.duration import ZERO, later, to_micros
from windlass.core.errors import JobConflict, StoreCorrupt
from windlass.core.failpoint import reach, removed
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.core.states import State
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded
from windlass.kit.settlements import KeptResult, failure_of, is_plain, kept_result, result_of
from windlass.kit.unique_keys import after_attempt
from windlass.stores.sqlite.moves import delivery_ends, holds
from windlass.stores.sqlite.moves.ack import ack_many
from windlass.stores.sqlite.moves.enqueue import insert_any, write_kv
from windlass.stores.sqlite.moves.hold_claims import fence
from windlass.stores.sqlite.moves.receipts import SqliteRequest, receipt, write_receipt
from windlass.stores.sqlite.moves.set_aside import corrupt, damage_of_key
from windlass.stores.sqlite.rows import Standing
from windlass.stores.sqlite.transaction import RETRIED, Transaction


def settle(tx: Transaction, requests: Sequence[SqliteRequest[SettleClaims]]) -> list[list[SettleResult]]:
    """Settle what every call brings, each settlement as a step of its own.

    Calls that bring nothing but plain successes, which is nearly all there is, are taken together, before the others:
    so the answers are those of the calls one after the other, in some order.
    """
    brought = [(request.command.settlements, request.request_id) for request in requests]
    together = [request_id is None and all(map(is_plain, settlements)) for settlements, request_id in brought]
    plain = [one for (settlements, _), joins in zip(brought, together, strict=True) if joins for one in settlements]
    shared = iter(_ack_all(tx, plain))
    return [
        list(islice(shared, len(settlements))) if joins else _settle_once(tx, settlements, request_id)
        for (settlements, request_id), joins in zip(brought, together, strict=True)
    ]


def _settle_once(tx: Transaction, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
    if (reply := receipt(tx, request_id, list[KeptResult])) is not None:
        return [result_of(kept) for kept in reply]
    results = _settle_all(tx, settlements)
    # nothing was written of a damaged job: a repeat asks again, and finds the others settled by their tokens
    if not any(isinstance(result, StoreCorrupt) for result in results):
        write_receipt(tx, request_id, list(map(kept_result, results)))
    return results


def _settle_all(tx: Transaction, settlements: Sequence[Settlement]) -> list[SettleResult]:
    """Settle in order; successes that follow each other are one statement."""
    results: list[SettleResult] = []
    for plain, run in groupby(settlements, key=is_plain):
        chosen = list(run)
        results += _ack_all(tx, chosen) if plain else [_settle_one(tx, settlement) for settlement in chosen]
    return results


def _ack_all(tx: Transaction, settlements: Sequence[Settlement]) -> list[SettleResult]:
    if tx.careful or removed("fence"):
        return [_settle_one(tx, settlement) for settlement in settlements]
    return [
        _settle_one(tx, settlement) if result is None else result
        for settlement, result in zip(settlements, ack_many(tx, settlements), strict=True)
    ]


def _settle_one(tx: Transaction, settlement: Settlement) -> SettleResult:
    try:
        job = fence(tx, settlement.job_id, settlement.token)
    except StoreCorrupt as error:
        return error
    if isinstance(job, Settled):
        return job
    if isinstance(settlement.verdict, (ToRetry, ToSnoozed, ToReleased)) and (damage := damage_of_key(job)):
        # the rescue makes it dead when its lease has run out
        return corrupt(job, damage)
    if not settlement.then and not tx.careful:
        _write(tx, job, settlement)
        return Settled.DONE
    mark = tx.mark()
    try:
        _write(tx, job, settlement)
    except (JobConflict, StoreCorrupt) as refused:
        tx.back_to(mark)
        return refused
    finally:
        tx.accept()
    return Settled.DONE


def _write(tx: Transaction, job: Standing, settlement: Settlement) -> None:
    _write_verdict(tx, job, settlement)
    reach("sqlite.settle.before_then")
    insert_any(tx, settlement.then)
    write_kv(tx, settlement.kv)


def _write_verdict(tx: Transaction, job: Standing, settlement: Settlement) -> None:
    match settlement.verdict:
        case ToSucceeded(result, codec):
            delivery_ends.finish(tx, job, State.SUCCEEDED, keep=settlement.keep, result=result, codec=codec)
        case ToDead(failure):
            delivery_ends.write_delivery(tx, job, "failed", failure)
            delivery_ends.finish(tx, job, State.DEAD, keep=settlement.keep, error=failure.summary)
        case ToCancelled(reason):
            delivery_ends.write_delivery(tx, job, "cancelled", failure_of(reason))
            delivery_ends.finish(tx, job, State.CANCELLED, keep=settlement.keep, error=reason)
        case ToRetry(delay, failure):
            delivery_ends.write_delivery(tx, job, "failed", failure)
            run_at = to_micros(later(tx.moment, delay))
            state = State.PENDING if delay == ZERO else State.SCHEDULED
            delivery_ends.wait_again(tx, job, state, run_at, after_attempt(job), error=failure.summary)
            tx.happened(job.queue, job.kind, RETRIED)
        case ToSnoozed(delay):
            delivery_ends.write_delivery(tx, job, "snoozed")
            run_at = to_micros(later(tx.moment, delay))
            state = State.PENDING if delay == ZERO else State.SCHEDULED
            delivery_ends.wait_again(tx, job, state, run_at, after_attempt(job), attempt=job.attempt - 1)
        case ToReleased(started):
            delivery_ends.write_delivery(tx, job, "released")
            kept = after_attempt(job) if started else holds.after_release(tx, job)
            delivery_ends.wait_again(tx, job, State.PENDING, job.run_at, kept, attempt=job.attempt - 1)
        case _:
            assert_never(settlement.verdict)
