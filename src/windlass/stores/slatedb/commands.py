"""Steps of the dispatcher: the function that executes each command, and each query of what only the owner knows.

Each function reads the records that it needs, then does what `kit.moves` says.
"""

from dataclasses import dataclass
from typing import Any, Final, TypeVar

from windlass.core import commands, queries
from windlass.core.errors import StoreMoved
from windlass.core.store_calls import Command, RepeatSafety, StoreCall, table_of
from windlass.stores.slatedb.moves import claim, enqueue, housekeeping, keep, parcels, steer
from windlass.stores.slatedb.moves.receipts import first_reply, keep_reply
from windlass.stores.slatedb.table import Table

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class BeatOwner(Command[None]):
    """Change nothing: the heartbeat of the owner is written with it when it is due."""

    repeat = RepeatSafety.SAME


async def _nothing(table: Table, command: BeatOwner) -> None:
    del table, command


INTERNAL: Final[tuple[type[Command[Any]], ...]] = (
    claim.GiveBackClaims, steer.PruneJobs, housekeeping.PruneBeside, BeatOwner,
)  # fmt: skip
"""The commands that only this store knows."""

# settlements first and claims last, so that a claim sees what came with it
STEPS: Final = table_of(
    commands.SettleClaims.by_coroutine(claim.settle),
    claim.GiveBackClaims.by_coroutine(claim.give_back),
    commands.EnqueueJobs.by_coroutine(enqueue.enqueue),
    commands.RenewClaims.by_coroutine(claim.renew),
    commands.WriteNotes.by_coroutine(claim.note),
    commands.CancelJobs.by_coroutine(steer.cancel),
    commands.RetryJobs.by_coroutine(steer.retry),
    commands.DeleteJobs.by_coroutine(steer.delete),
    commands.RescheduleJobs.by_coroutine(steer.reschedule),
    commands.SetQueueSettings.by_coroutine(steer.set_queue_settings),
    commands.RescueClaims.by_coroutine(steer.rescue),
    commands.PromoteJobs.by_coroutine(steer.promote),
    steer.PruneJobs.by_coroutine(steer.prune),
    commands.WriteKv.by_coroutine(keep.write_kv),
    commands.TakeLock.by_coroutine(keep.take_lock),
    commands.FreeLock.by_coroutine(keep.free_lock),
    commands.WriteHeartbeat.by_coroutine(keep.write_heartbeat),
    commands.RemoveServer.by_coroutine(keep.remove_server),
    commands.WriteAudit.by_coroutine(keep.write_audit),
    commands.WriteSchedule.by_coroutine(enqueue.write_schedule),
    commands.RemoveSchedule.by_coroutine(enqueue.remove_schedule),
    queries.ListDueSchedules.by_coroutine(enqueue.due_schedules),
    commands.FireSchedule.by_coroutine(enqueue.fire),
    commands.ClaimJobs.by_coroutine(claim.claim),
    queries.GetDueTime.by_coroutine(claim.due_in),
    commands.WriteTimings.by_coroutine(keep.write_timings),
    commands.UnpackJobs.by_coroutine(parcels.unpack),
    commands.DeleteMoved.by_coroutine(parcels.delete_moved),
    commands.TakeKeys.by_coroutine(parcels.take_keys),
    commands.SetMoved.by_coroutine(parcels.set_moved),
    queries.PackJobs.by_coroutine(parcels.pack),
    queries.ListEndedServers.by_coroutine(keep.ended_servers),
    housekeeping.PruneBeside.by_coroutine(housekeeping.prune_beside),
    BeatOwner.by_coroutine(_nothing),
)
"""The function that executes each call, in the order in which calls that are served together are executed."""


async def execute(table: Table, call: StoreCall[R], request_id: str | None) -> R:
    """Execute a call in the step of the dispatcher; a repeat of its request id gets the first reply."""
    run = STEPS[type(call)]
    reply: R
    if not isinstance(call, Command):
        reply = await run(table, call)
        return reply
    kept_as = request_id if call.repeat is RepeatSafety.STORE else None
    if kept_as is not None:
        before: R | None = await first_reply(table, call, kept_as)
        if before is not None:
            return before
    if call.begins_work and table.moved is not None:
        raise StoreMoved(table.moved.to)
    reply = await run(table, call)
    if kept_as is not None:
        keep_reply(table, call, kept_as, reply)
    return reply
