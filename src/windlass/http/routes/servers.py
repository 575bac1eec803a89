"""Servers: their beats, and what is known of them."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.api import calls, operations, server_calls
from windlass.api.looks import server_of
from windlass.http.call import Call, Handled
from windlass.http.presence import Presence


async def beat(call: Call[server_calls.BeatAsked]) -> calls.Nothing:
    """Write that a server is live."""
    await _presence(call).beat(server_of(call.asked.server))
    return calls.Nothing()


async def leave(call: Call[server_calls.LeaveAsked]) -> calls.Nothing:
    """Take a server out."""
    await _presence(call).leave(call.asked.id)
    return calls.Nothing()


def _presence(call: Call[Any]) -> Presence:
    shared = call.shared
    if call.identity.queues is None:
        return shared.presence
    # one of their own, since they may not write over the record of another one's server
    return Presence(call.store, call.client.clock, shared.look_at_schedules)


HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    Handled(operations.BEAT, beat),
    Handled(operations.LEAVE, leave),
)
