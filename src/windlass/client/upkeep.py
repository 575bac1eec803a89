"""Rescue, promotion and pruning, page by page until nothing is left; for the client and for the services."""

from typing import Final

from windlass.core.requests import Rescued, RescueRequest
from windlass.core.retention import Retention
from windlass.core.store import Store

PAGE: Final = 1_000


async def rescue_all(store: Store, request: RescueRequest, retention: Retention) -> list[Rescued]:
    """Take back every claim that `request` means; return which."""
    taken: list[Rescued] = []
    while rescued := await store.rescue(request, retention):
        taken += rescued
        if len(rescued) < request.limit:
            break
    return taken


async def promote_all(store: Store) -> int:
    """Make every job that has come due pending; return how many."""
    count = 0
    while promoted := await store.promote(limit=PAGE):
        count += promoted
        if promoted < PAGE:
            break
    return count


async def prune_all(store: Store, retention: Retention) -> int:
    """Delete every record past its retention; return how many."""
    count = 0
    while pruned := await store.prune(retention, limit=PAGE):
        count += pruned
        if pruned < PAGE:
            break
    return count
