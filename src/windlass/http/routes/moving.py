"""Jobs on their way from one store to another."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.api import calls, moving, operations
from windlass.client.parcel_size import fitting
from windlass.config.masked import masked
from windlass.core.commands import UnpackJobs
from windlass.core.errors import InvalidValue
from windlass.core.moving import Moved
from windlass.core.names import check_name
from windlass.http.audit import write_down
from windlass.http.call import Call, Handled
from windlass.http.parcels import parcel_of


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
    parcel = fitting(packed)
    call.reading.took(sum(len(each.payload) for each in parcel.jobs))
    return moving.packed_told(parcel)


async def unpack(call: Call[moving.Parcel]) -> moving.UnpackTold:
    """Put the jobs of a parcel in line, if it is the next one.

    A repeat of a call whose reply was lost finds its own parcel to be the last one, and was done then.
    """
    parcel = parcel_of(call.asked)
    done = await call.store.do(UnpackJobs(parcel), request_id=call.request_id)
    if not done and call.repeats:
        last = await call.store.unpacked(parcel.move, parcel.queue)
        ids = [job.id for job in parcel.packed.jobs]
        done = last is not None and last.number == parcel.number and list(last.ids) == ids
    return moving.UnpackTold(unpacked=done)


HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    Handled(operations.SET_MOVED, set_moved),
    Handled(operations.PACK, pack),
    Handled(operations.UNPACK, unpack),
)
