"""Moved check: a store whose jobs go to another one refuses what would begin new work.

It is read in the transaction that writes, which has SQLite's write lock or fails: no call slips in between.
"""

from windlass.core.errors import StoreMoved
from windlass.stores.sqlite.transaction import Transaction


def moved_error(tx: Transaction) -> StoreMoved:
    """Return the error for a command that would begin work in a store that was moved."""
    return StoreMoved(tx.row("moved", ())[0])
