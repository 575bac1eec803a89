"""Settle: how a claim ended, each settlement as one step of its own."""

from datetime import datetime
from typing import assert_never

from windlass.core.duration import later
from windlass.core.errors import JobConflict
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.core.states import State
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded
from windlass.kit.moves import enqueuing
from windlass.kit.moves.holds import Holder, holder_for
from windlass.kit.moves.record import Record
from windlass.kit.moves.table import RETRIED, Table


def settle(table: Table, settlement: Settlement, now: datetime) -> SettleResult:
    """Write how one claim ended, with its `then` jobs and values, or nothing of it."""
    record = table.holder_of(settlement.job_id, settlement.token)
    if isinstance(record, Settled):
        return record
    if settlement.then:
        try:
            _check_then(table, record, settlement, now)
        except JobConflict as conflict:
            return conflict
    _write(table, record, settlement, now)
    if settlement.then:
        enqueuing.put(table, settlement.then, now)
    if settlement.kv:
        table.put_values(settlement.kv)
    return Settled.DONE


def _check_then(table: Table, record: Record, settlement: Settlement, now: datetime) -> None:
    """Check the ids and keys of `then` jobs as they will be once the verdict is written."""
    ends = isinstance(settlement.verdict, (ToSucceeded, ToDead, ToCancelled))
    holders: dict[str, Holder | None] = {}
    if record.hold is not None:
        if ends and record.hold.until == "finished" and table.holds.held_by(record):
            holders[record.hold.name] = None
        elif _returns_unstarted(settlement) and table.holds.may_take_back(record, now):
            holders[record.hold.name] = holder_for(record.hold, record.id, now)
    gone = record.id if ends and not settlement.keep else None
    waiting = None if ends else record.id
    enqueuing.check(table, settlement.then, now, enqueuing.Ahead(holders, gone, waiting))


def _returns_unstarted(settlement: Settlement) -> bool:
    return isinstance(settlement.verdict, ToReleased) and not settlement.verdict.started


def _write(table: Table, record: Record, settlement: Settlement, now: datetime) -> None:
    match settlement.verdict:
        case ToSucceeded(result, codec):
            record.result, record.result_codec = result, codec
            table.stops_running(record, now, "succeeded")
            table.ends(record, State.SUCCEEDED, now, keep=settlement.keep)
        case ToDead(failure):
            table.stops_running(record, now, "failed", failure)
            table.ends(record, State.DEAD, now, keep=settlement.keep)
        case ToCancelled(reason):
            table.stops_running(record, now, "cancelled")
            record.last_error = reason
            table.ends(record, State.CANCELLED, now, keep=settlement.keep)
        case ToRetry(delay, failure):
            table.stops_running(record, now, "failed", failure)
            table.queue(record.queue).count(RETRIED, record.kind, now)
            table.holds.give_up(record)
            table.wait_for(record, later(now, delay), now)
        case ToSnoozed(delay):
            _give_attempt_back(table, record, now, "snoozed")
            table.holds.give_up(record)
            table.wait_for(record, later(now, delay), now)
        case ToReleased():
            _release(table, record, settlement, now)
        case _:
            assert_never(settlement.verdict)


def _release(table: Table, record: Record, settlement: Settlement, now: datetime) -> None:
    _give_attempt_back(table, record, now, "released")
    if _returns_unstarted(settlement):
        table.holds.take_back(record, now)
    else:
        table.holds.give_up(record)
    table.wait_for(record, record.run_at, now)


def _give_attempt_back(table: Table, record: Record, now: datetime, outcome: str) -> None:
    table.stops_running(record, now, outcome)
    record.attempt -= 1
