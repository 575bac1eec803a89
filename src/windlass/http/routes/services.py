"""What services do, once and now; what people did; and the health of the store."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.api import calls, operations, upkeep_calls
from windlass.api.looks import Retained
from windlass.api.roles import Role
from windlass.core.duration import moment
from windlass.core.errors import NotAllowed
from windlass.core.looks import AuditEntry
from windlass.core.names import check_name
from windlass.core.requests import RescueRequest
from windlass.core.retention import Retention
from windlass.http.audit import write_down
from windlass.http.call import Call, Handled


async def rescue(call: Call[upkeep_calls.RescueAsked]) -> upkeep_calls.RescueTold:
    """Take back claims whose lease ran out, or with `force` all."""
    asked = call.asked
    steers = not call.identity.roles.isdisjoint((Role.OPERATE, Role.ADMIN))
    if not steers and (not asked.workers or asked.to == "dead"):
        # the parent of workers gives back what a child of its own held that has died
        message = "a token that works may give back jobs of workers that it names, and no others: use one that operates"
        raise NotAllowed(message)
    queues = None if asked.queues is None else [check_name(queue, "queue") for queue in asked.queues]
    request = RescueRequest(queues, asked.workers, asked.force, asked.to, asked.limit)
    rescued = await call.store.rescue(request, _kept(call, asked.retention))
    if asked.force and rescued and steers:
        target = "all queues" if queues is None else " ".join(queues)[:1000]
        await write_down(call, "rescue", target, {"count": str(len(rescued)), "to": asked.to})
    return upkeep_calls.RescueTold(rescued=[upkeep_calls.Rescued(id=each.id, state=each.state) for each in rescued])


async def prune(call: Call[upkeep_calls.PruneAsked]) -> calls.CountTold:
    """Delete finished records past their retention."""
    kept = _kept(call, call.asked.retention)
    return calls.CountTold(count=await call.store.prune(kept, limit=call.asked.limit))


async def write_audit(call: Call[upkeep_calls.AuditWritten]) -> calls.Nothing:
    """Keep what people did; nobody but an administrator writes in another one's name alone."""
    name = None if Role.ADMIN in call.identity.roles else call.identity.name
    entries = [
        AuditEntry(moment(each.at, "at"), _signed(each.actor, name), each.action, each.target, each.detail)
        for each in call.asked.entries
    ]
    await call.store.write_audit(entries)
    return calls.Nothing()


def _signed(actor: str, name: str | None) -> str:
    return actor if name is None or actor == name else f"{name} ({actor})"


def _kept(call: Call[Any], given: Retained | None) -> Retention:
    return call.shared.retention if given is None else given.retention()


HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    Handled(operations.RESCUE, rescue),
    Handled(operations.PRUNE, prune),
    Handled(operations.WRITE_AUDIT, write_audit),
)
