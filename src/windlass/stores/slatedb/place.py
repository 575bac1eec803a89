"""What stands between a job and its claim."""

from datetime import datetime

from windlass.core.ids import JobId
from windlass.core.looks import Place
from windlass.core.queries import GetPosition
from windlass.core.states import State
from windlass.kit.moves.holds import live
from windlass.kit.moves.looking import AHEAD_MOST
from windlass.kit.moves.record import Record
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import free_if_damaged
from windlass.stores.slatedb.loading import load_records
from windlass.stores.slatedb.queue_looks import read_queue
from windlass.stores.slatedb.queues import place_of
from windlass.stores.slatedb.view import ReadState, View


async def position(state: ReadState, query: GetPosition) -> Place | None:
    """Return what stands between a job and its claim; None when it is not here."""
    found = await load_records(state.view, [query.job_id], parts=())
    if query.job_id not in found:
        return None
    record = found[query.job_id].record
    ahead = await _ahead(state.view, record) if record.state is State.PENDING else None
    return Place(state.now, ahead, await _key_holder(state.view, record, state.now))


async def _ahead(view: View, record: Record) -> int:
    """Count the pending jobs of its queue before it: those of all lines that sort before its own place."""
    kept = await read_queue(view, record.queue)
    place, count = place_of(record), 0
    for kind, _ in () if kept is None else kept.lines:
        line = keys.line(record.queue, kind)
        count += len(await view.scan(line, line + place, limit=AHEAD_MOST - count))
    return count


async def _key_holder(view: View, record: Record, now: datetime) -> JobId | None:
    value = None if record.hold is None else await view.get(keys.hold(record.hold.name))
    found = None if value is None else free_if_damaged(records.holder_record, value, "a unique key")
    holder = None if found is None else live(found.holder(), now)
    return None if holder is None else holder.job_id
