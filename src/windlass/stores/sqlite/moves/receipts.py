"""Receipts: the answer to a request, for a caller whose reply was lost."""

import msgspec

from windlass.stores.sqlite.transaction import Transaction


def receipt(tx: Transaction, request_id: str | None) -> str | None:
    """Return the answer that this request was given before, if it was."""
    if request_id is None:
        return None
    row = tx.row("receipt", (request_id,))
    return None if row is None else row[0]


def write_receipt(tx: Transaction, request_id: str | None, reply: object) -> None:
    """Keep the answer with what the request wrote; without an id there is nobody to ask again."""
    if request_id is not None:
        tx.run("write_receipt", (request_id, tx.now, msgspec.json.encode(reply).decode()))
