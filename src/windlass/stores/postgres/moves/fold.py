"""Fold: what changed since the last time is added to the counts, so that a look need not add up every change."""

import logging
from typing import Final, NamedTuple

from windlass.kit.damage import DamageLog
from windlass.stores.postgres.work import Statement, Work

AT_ONCE: Final = 20_000
_damaged: Final = DamageLog(logging.getLogger("windlass.postgres"))


class Folded(NamedTuple):
    """How many changes were added up, and the number of the last that was looked at, which may be damaged."""

    changes: int
    highest: int


def fold(above: int = 0, *, alone: bool = False) -> Work[Folded]:
    """Add up some thousands of the changes numbered above `above`; nothing is done while another one does it.

    A transaction that stays open may bring changes with lower numbers later: now and then it is called with zero. When
    it is `alone` in its transaction, its commit does not wait for the disk.
    """
    [(changes, highest, damaged)] = yield Statement("fold", {"above": above, "limit": AT_ONCE, "alone": alone})
    for change in damaged:
        _damaged.log("a change is not added to the counts, it is damaged: windlass_delta.id = %s", change)
    return Folded(changes, above if highest is None else highest)
