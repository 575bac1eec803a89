"""How far one call reaches: over several queues and the caller's own values together, or within one queue alone."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

import pytest

from windlass.core.errors import NotAtomicHere
from windlass.core.filters import JobFilter
from windlass.core.store import Store
from windlass.core.unique import Scope

K = TypeVar("K")

_ALL: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Reach:
    """What a test uses that is not about several queues, but shows more where one call may touch them."""

    over_queues: bool
    """Whether one call may touch several queues, or a queue and the caller's own values."""

    def queue(self, other: str, own: str = "default") -> str:
        """Return `other` where a call that is about `own` reaches it too, else `own`."""
        return other if self.over_queues else own

    def kv(self, pairs: Mapping[K, bytes | None]) -> dict[K, bytes | None]:
        """Return `pairs` where a call that is about a queue may write them too, else none."""
        return dict(pairs) if self.over_queues else {}

    def scope(self, scope: Scope) -> Scope:
        """Return `scope` where a key may hold in it, else that of the queue."""
        return scope if self.over_queues else "queue"


@asynccontextmanager
async def at_once(store: Store) -> AsyncGenerator[None]:
    """Call in this block what needs several queues at once, and show what comes of it.

    A store that is not `atomic_across_queues` must refuse it, and have written nothing: for that one the block ends at
    the refusal, and what comes after it is for every store.
    """
    if store.features.atomic_across_queues:
        yield
        return
    before = await everything(store)
    with pytest.raises(NotAtomicHere):
        yield
    assert await everything(store) == before


async def everything(store: Store) -> list[object]:
    """Return all that is kept in a store."""
    jobs = await store.jobs(JobFilter(), after=None, limit=_ALL)
    ids = [job.id for job in jobs]
    return [
        jobs,
        await store.get(ids),
        await store.glance(ids),
        await store.stats(),
        await store.kv_scan(b"", after=None, limit=_ALL),
        (await store.schedules()).schedules,
    ]
