"""The gate of a store that is left for another one: what would begin something is refused.

It is looked at in the transaction that writes, which has SQLite's write lock or fails: nobody slips in between.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from windlass.core.errors import StoreMoved, WindlassError
from windlass.stores.sqlite.transaction import Transaction

A = TypeVar("A")
R = TypeVar("R")


def refusal(tx: Transaction) -> StoreMoved:
    """Return the error for whoever would begin something in a store that is left."""
    return StoreMoved(tx.row("moved", ())[0])


def gated(
    run: Callable[[Transaction, list[A]], Sequence[R | WindlassError]],
) -> Callable[[Transaction, list[A]], Sequence[R | WindlassError]]:
    """Let a move be made only while the store takes jobs; else each of its calls is refused."""

    def run_or_refuse(tx: Transaction, calls: list[A]) -> Sequence[R | WindlassError]:
        return run(tx, calls) if tx.takes_jobs() else [refusal(tx) for _ in calls]

    return run_or_refuse
