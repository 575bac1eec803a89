"""Servers: their beats, and what is known of them."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.api import calls, operations, server_calls
from windlass.api.looks import server_of, server_told
from windlass.core.duration import duration
from windlass.http.call import Call, Handled
from windlass.http.presence import Presence


async def servers(call: Call[calls.Nothing]) -> server_calls.ServersTold:
    """List the servers."""
    return server_calls.ServersTold(servers=[server_told(record) for record in await call.store.servers()])


async def beat(call: Call[server_calls.BeatAsked]) -> calls.Nothing:
    """Write that a server is live."""
    await _presence(call).beat(server_of(call.asked.server))
    return calls.Nothing()


async def leave(call: Call[server_calls.LeaveAsked]) -> calls.Nothing:
    """Take a server out."""
    await _presence(call).leave(call.asked.id)
    return calls.Nothing()


async def ended_servers(call: Call[calls.Nothing]) -> calls.NamesTold:
    """List servers whose process has ended for sure."""
    return calls.NamesTold(names=await call.store.ended_servers())


async def stranded(call: Call[server_calls.StrandedAsked]) -> calls.CountTold:
    """Count the leases that ran out and that nobody will rescue."""
    return calls.CountTold(count=await call.store.stranded(dead_after=duration(call.asked.dead_after, "dead_after")))


def _presence(call: Call[Any]) -> Presence:
    shared = call.shared
    if call.identity.queues is None:
        return shared.presence
    # one of their own, since they may not write over the record of another one's server
    return Presence(call.store, call.client.clock, shared.look_at_schedules)


HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    Handled(operations.SERVERS, servers),
    Handled(operations.BEAT, beat),
    Handled(operations.LEAVE, leave),
    Handled(operations.ENDED, ended_servers),
    Handled(operations.STRANDED, stranded),
)
