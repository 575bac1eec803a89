"""Commands of a Postgres store: the generator that executes each, inside one transaction."""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from windlass.core import commands
from windlass.core.errors import StoreUnavailable
from windlass.core.store_calls import Command, RepeatSafety, table_of
from windlass.kit.request_names import of_kind
from windlass.stores.postgres.moves import keep, operate, pack, schedules, unpack
from windlass.stores.postgres.moves.departure import or_moved, refuse_if_moved
from windlass.stores.postgres.moves.receipts import receipt, reply_of, write_receipt, write_receipt_unless_moved
from windlass.stores.postgres.room import Room
from windlass.stores.postgres.work import Changes, Work

C = TypeVar("C", bound=Command[Any])
R = TypeVar("R")

STEPS: Final = table_of(
    commands.CancelJobs.by_generator(operate.cancel),
    commands.RetryJobs.by_generator(operate.retry),
    commands.DeleteJobs.by_generator(operate.delete),
    commands.RescheduleJobs.by_generator(operate.reschedule),
    commands.WriteSchedule.by_generator(schedules.write),
    commands.RemoveSchedule.by_generator(schedules.remove),
    commands.FireSchedule.by_generator(schedules.fire),
    commands.WriteKv.by_generator(keep.write_kv_if),
    commands.TakeLock.by_generator(keep.take_lock),
    commands.FreeLock.by_generator(keep.free_lock),
    commands.WriteHeartbeat.by_generator(keep.write_heartbeat),
    commands.RemoveServer.by_generator(keep.remove_server),
    commands.WriteTimings.by_generator(keep.write_timings),
    commands.WriteAudit.by_generator(keep.write_audit),
    commands.UnpackJobs.by_generator(unpack.unpack),
    commands.TakeKeys.by_generator(unpack.take_keys),
    commands.DeleteMoved.by_generator(pack.let_go),
)
"""The generator function that executes each command of one step."""


def execute(
    room: Room, step: Callable[[Changes, C], Work[R]], command: C, *, request_id: str | None = None
) -> Coroutine[Any, Any, R]:
    """Execute a command by its step in a transaction, which also writes the counts, the receipt and the moved check.

    After a lost reply the transaction is repeated. The receipt of the first one then undoes it, and the first reply is
    returned. A command that does the same again has no receipt. One whose repeats the store knows has its reply in the
    receipt, under the request id, so that a later call gets it too.
    """
    name, again, replies = "", None, list[R]()
    match command.repeat:
        case RepeatSafety.SAME:
            pass
        case RepeatSafety.STORE:
            name = of_kind(type(command).__name__, request_id) or room.new_request_id()
            again = partial(_kept_reply, name)
        case RepeatSafety.REPLY:
            name = room.new_request_id()
            again = partial(_last, replies)

    def work(changes: Changes) -> Work[R]:
        steps = step(changes, command)
        reply = yield from or_moved(steps) if command.begins_work else steps
        yield from changes.flush()
        yield from _end(changes, command, name, reply)
        replies.append(reply)
        return reply

    return room.runner.run(work, again=again)


def _end(changes: Changes, command: Command[R], name: str, reply: R) -> Work[None]:
    """Write the receipt, if it has a name, and refuse a command that begins work in a store that was moved.

    The mark is read last: a call that was done before the store was moved has its receipt, and gets its reply.
    """
    text = msgspec.json.encode(reply).decode() if command.repeat is RepeatSafety.STORE else ""
    if name and command.begins_work:
        yield from write_receipt_unless_moved(changes, name, text)
    elif name:
        yield from write_receipt(changes, name, text)
    elif command.begins_work:
        yield from refuse_if_moved()


def _kept_reply(name: str) -> Work[Any]:
    """Return the reply in a receipt."""
    kept = yield from receipt(name)
    if kept is None:
        message = "the first reply to this call is gone: its receipt was pruned while it was repeated"
        raise StoreUnavailable(message)
    return reply_of(name, kept.reply or "", msgspec.json.decode)


def _last(replies: Sequence[R]) -> Work[R]:
    """Return the reply of the transaction that was committed: the last one whose receipt was not refused."""
    yield from ()
    return replies[-1]
