"""Jobs on their way from one store to another."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.api import calls, moving, operations
from windlass.api.shape import data
from windlass.client.parcel_size import fitting
from windlass.config.masked import masked
from windlass.core.errors import InvalidValue
from windlass.core.ids import job_id
from windlass.core.moving import Moved
from windlass.core.names import check_key, check_name
from windlass.http.audit import write_down
from windlass.http.call import Call, Handled
from windlass.http.parcels import key_name, keys_of, parcel_of


async def moved(call: Call[calls.Nothing]) -> moving.MovedTold:
    """Tell where the jobs of this store go or went."""
    return moving.MovedTold(moved=moving.moved_told(await call.store.moved()))


async def set_moved(call: Call[moving.SetMovedAsked]) -> calls.Nothing:
    """Let the store take nothing new, or take jobs again."""
    wanted = None if call.asked.moved is None else _checked(call.asked.moved)
    await call.store.set_moved(wanted)
    if wanted is None:
        await write_down(call, "set moved", "nowhere")
    else:
        await write_down(call, "set moved", wanted.to, {"move": wanted.move})
    return calls.Nothing()


def _checked(asked: moving.Moved) -> Moved:
    if masked(asked.to) != asked.to or not asked.to.isprintable():
        # everybody who asks this store for anything is told it
        message = "`to` is a URL without secrets, which all clients are told: leave password and tokens out"
        raise InvalidValue(message)
    return Moved(asked.to, check_name(asked.move, "move"))


async def pack(call: Call[moving.PackAsked]) -> moving.Packed:
    """Return waiting jobs of a queue whole, as many as one parcel has room for."""
    packed = await call.store.pack(check_name(call.asked.queue, "queue"), limit=call.asked.limit)
    return moving.packed_told(fitting(packed))


async def unpack(call: Call[moving.Parcel]) -> moving.UnpackTold:
    """Put the jobs of a parcel in line, if it is the next one.

    A repeat of a call whose reply was lost finds its own parcel to be the last one, and was done then.
    """
    parcel = parcel_of(call.asked)
    done = await call.store.unpack(parcel)
    if not done and call.repeats:
        last = await call.store.unpacked(parcel.move, parcel.queue)
        ids = [job.id for job in parcel.packed.jobs]
        done = last is not None and last.number == parcel.number and list(last.ids) == ids
    return moving.UnpackTold(unpacked=done)


async def unpacked(call: Call[moving.UnpackedAsked]) -> moving.UnpackedTold:
    """Tell the last parcel of a move and a queue that was unpacked here."""
    asked = call.asked
    last = await call.store.unpacked(check_name(asked.move, "move"), check_name(asked.queue, "queue"))
    return moving.UnpackedTold() if last is None else moving.UnpackedTold(number=last.number, ids=list(last.ids))


async def let_go(call: Call[moving.LetGoAsked]) -> moving.LetGoTold:
    """Forget what another store has now."""
    asked = call.asked
    done = await call.store.let_go(
        move=None if asked.move is None else check_name(asked.move, "move"),
        jobs=[job_id(each) for each in asked.jobs],
        keys=[key_name(each) for each in asked.keys],
        kv=[check_key(data(each)) for each in asked.kv],
        schedules=[check_name(each, "schedule id") for each in asked.schedules],
    )
    return moving.LetGoTold(let_go=done)


async def timed_keys(call: Call[moving.TimedKeysAsked]) -> moving.TimedKeys:
    """List unique keys that only time frees."""
    return moving.TimedKeys(
        keys=[moving.key_told(each) for each in await call.store.timed_keys(limit=call.asked.limit)]
    )


async def take_keys(call: Call[moving.TakeKeysAsked]) -> calls.Nothing:
    """Let keys be held here until their time is over, those that are free."""
    keys = keys_of(call.asked.keys)
    if any(key.until != "time" for key in keys):
        message = "only keys that time frees can be taken alone: others come with their jobs"
        raise InvalidValue(message)
    await call.store.take_keys(keys)
    return calls.Nothing()


HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    Handled(operations.MOVED, moved),
    Handled(operations.SET_MOVED, set_moved),
    Handled(operations.PACK, pack),
    Handled(operations.UNPACK, unpack),
    Handled(operations.UNPACKED, unpacked),
    Handled(operations.LET_GO, let_go),
    Handled(operations.TIMED_KEYS, timed_keys),
    Handled(operations.TAKE_KEYS, take_keys),
)
