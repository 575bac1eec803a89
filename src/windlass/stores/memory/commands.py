"""Commands of a store in memory; each function runs inside an atomic step."""

from typing import Final

from windlass.core import commands
from windlass.core.requests import Claimed
from windlass.core.store_calls import table_of
from windlass.core.topics import PAUSES
from windlass.kit.moves import claiming
from windlass.kit.moves import commands as moves
from windlass.stores.memory import maintenance, queues
from windlass.stores.memory.atomic_step import MemoryState


def claim(state: MemoryState, command: commands.ClaimJobs) -> Claimed:
    """Give ready jobs to the caller."""
    known = (state.table.queues.get(name) for name in dict.fromkeys(command.request.queues))
    giving = [queue for queue in known if queue is not None and not queue.paused]
    for queue in giving:
        maintenance.promote_queue(state, queue)
    ready = queues.ready(giving, command.request)
    return Claimed(claiming.claim(state.table, ready, command.request, state.rng, state.now))


def claim_again(state: MemoryState, claimed: Claimed) -> Claimed:
    """Return those of an earlier reply that still hold their job."""
    return Claimed(claiming.still_held(state.table, [(claim.job.id, claim.token) for claim in claimed.jobs]))


def set_queue_settings(state: MemoryState, command: commands.SetQueueSettings) -> None:
    """Set settings of a queue, such as whether it gives claims."""
    queue = state.table.queue(command.queue)
    queue.set_settings(queue.settings.changed(command.settings, command.layer))
    if command.settings.paused is not None:
        state.table.news.add(PAUSES if command.settings.paused else queue.topic)


COMMANDS: Final = {
    **moves.COMMANDS,
    **table_of(
        commands.SetQueueSettings.by(set_queue_settings),
        commands.RescueClaims.by(maintenance.rescue),
        commands.PromoteJobs.by(maintenance.promote),
        commands.PruneRecords.by(maintenance.prune),
    ),
}
"""The function that executes each command."""
