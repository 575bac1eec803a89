"""Commands of a SQLite store: the function that executes each, inside a write transaction."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from windlass.core import commands
from windlass.core.commands import COMMANDS, ClaimJobs, EnqueueJobs, SettleClaims
from windlass.core.errors import WindlassError
from windlass.core.store_calls import Command, RepeatSafety, check_tables, table_of
from windlass.stores.sqlite.moves import (
    claim,
    enqueue,
    hold_claims,
    keep,
    leave_store,
    operate,
    promote,
    prune,
    rescue,
    schedules,
    settle,
    unpack,
)
from windlass.stores.sqlite.moves.moved_check import moved_error
from windlass.stores.sqlite.moves.receipts import SqliteRequest, receipt, write_receipt
from windlass.stores.sqlite.queue_settings import set_queue_settings
from windlass.stores.sqlite.transaction import Transaction

STEPS: Final = table_of(
    commands.RenewClaims.by(hold_claims.renew),
    commands.WriteNotes.by(hold_claims.note),
    commands.CancelJobs.by(operate.cancel),
    commands.RetryJobs.by(operate.retry),
    commands.DeleteJobs.by(operate.delete),
    commands.RescheduleJobs.by(operate.reschedule),
    commands.SetQueueSettings.by(set_queue_settings),
    commands.RescueClaims.by(rescue.rescue),
    commands.PromoteJobs.by(promote.promote),
    commands.PruneRecords.by(prune.prune),
    commands.WriteKv.by(keep.write_kv_if),
    commands.TakeLock.by(keep.take_lock),
    commands.FreeLock.by(keep.free_lock),
    commands.WriteHeartbeat.by(keep.write_heartbeat),
    commands.RemoveServer.by(keep.remove_server),
    commands.WriteTimings.by(keep.write_timings),
    commands.WriteAudit.by(keep.write_audit),
    commands.WriteSchedule.by(schedules.write),
    commands.RemoveSchedule.by(schedules.remove),
    commands.FireSchedule.by(schedules.fire),
    commands.SetMoved.by(leave_store.set_moved),
    commands.DeleteMoved.by(leave_store.let_go),
    commands.UnpackJobs.by(unpack.unpack),
    commands.TakeKeys.by(unpack.take_keys),
)
"""The function that executes each command. An error that it returns is raised to its caller alone."""
SHARED_STEPS: Final[Mapping[type[Command[Any]], Callable[[Transaction, Any], Sequence[Any]]]] = {
    SettleClaims: settle.settle,
    EnqueueJobs: enqueue.enqueue,
    ClaimJobs: claim.claim,
}
"""The function that executes all requests of one kind together, and checks their receipts."""
_ORDER: Final = (SettleClaims, EnqueueJobs, *STEPS, ClaimJobs)
"""The order in a commit: settlements first and claims last, so that a claim sees what the same commit brought."""
RANK: Final = {kind: rank for rank, kind in enumerate(_ORDER)}

check_tables(COMMANDS, STEPS)


def execute(tx: Transaction, requests: Sequence[SqliteRequest[Any]]) -> list[Any]:
    """Execute requests, which are in the order of a commit; return the result of each."""
    results: list[Any] = []
    for kind, group in groupby(requests, key=_kind_of):
        if kind in SHARED_STEPS:
            results += SHARED_STEPS[kind](tx, list(group))
        else:
            results += [_execute(tx, request) for request in group]
    return results


def _execute(tx: Transaction, request: SqliteRequest[Any]) -> Any:  # noqa: ANN401 - the reply to any command
    command, request_id = request
    name = request_id if command.repeat is RepeatSafety.STORE else None
    first = receipt(tx, name, object)
    if first is not None:
        return first
    if command.begins_work and not tx.takes_jobs():
        return moved_error(tx)
    reply = STEPS[type(command)](tx, command)
    if name is not None and not isinstance(reply, WindlassError):
        write_receipt(tx, name, reply)
    return reply


def _kind_of(request: SqliteRequest[Any]) -> type[Command[Any]]:
    command: Command[Any] = request.command
    return type(command)
