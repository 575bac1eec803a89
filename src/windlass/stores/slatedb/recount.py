"""Whether the counts of queues are those of the jobs that are there."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from windlass.core.states import ENDS, State
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.queue_looks import NamedQueue
from windlass.stores.slatedb.view import View

LOOKED_THROUGH: Final = 10_000
"""Entries of each family that are counted at most."""
_FAMILIES: Final[Mapping[bytes, frozenset[State]]] = {
    keys.LINES: frozenset({State.PENDING}),
    keys.DUE: frozenset({State.SCHEDULED}),
    keys.LEASES: frozenset({State.RUNNING}),
    keys.ENDS: ENDS,
}

Standing: TypeAlias = tuple[str, State]
"""A queue and a state that jobs of it are in."""


class Difference(NamedTuple):
    """A queue that counts other than what is there; `there` may be more where not all was counted."""

    queue: str
    state: State
    counts: int
    there: int


class Recount(NamedTuple):
    """What was found; `whole` when everything was counted."""

    differences: list[Difference]
    whole: bool


async def recount(view: View, queues: list[NamedQueue]) -> Recount:
    """Count the jobs in the indexes, the first ones of each family, and compare them with what queues count."""
    differences: list[Difference] = []
    whole = True
    for family, states in _FAMILIES.items():
        rows = await view.scan(family, keys.after(family), limit=LOOKED_THROUGH)
        there = Counter(_standing(family, key) for key, _ in rows)
        last = _standing(family, rows[-1][0]) if len(rows) == LOOKED_THROUGH else None
        counted = {(queue, state): kept.standing(state) for queue, kept in queues for state in states}
        differences += _compare(counted, there, last)
        whole = whole and last is None
    return Recount(differences, whole)


def _standing(family: bytes, key: bytes) -> Standing:
    queue = keys.queue_of(key)
    if family == keys.ENDS:
        return queue, keys.end_of(key)
    [state] = _FAMILIES[family]
    return queue, state


def _compare(counted: dict[Standing, int], there: Counter[Standing], last: Standing | None) -> list[Difference]:
    """Return what differs; those from `last` on, in the order of their keys, were not looked through to the end."""
    edge = None if last is None else keys.index(*last)
    found: list[Difference] = []
    for standing in counted.keys() | there.keys():
        counts, seen = counted.get(standing, 0), there[standing]
        open_ended = edge is not None and keys.index(*standing) >= edge
        if counts < seen or (counts > seen and not open_ended):
            found.append(Difference(*standing, counts, seen))
    return sorted(found)
