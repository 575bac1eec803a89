"""Receipts: the answer to a call, for a caller whose reply was lost."""

from windlass.core.errors import StoreCorrupt
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.records import Receipt
from windlass.stores.slatedb.table import Table

NONE = Receipt()


async def receipt(table: Table, request_id: str | None) -> Receipt:
    """Return what this request was answered before; an empty one if it was not."""
    if request_id is None:
        return NONE
    found = await table.value(keys.receipt(request_id))
    try:
        return NONE if found is None else records.receipt(found)
    except ValueError as error:
        message = f"what request {request_id!r} was answered cannot be read ({error}): nobody knows what became of it"
        raise StoreCorrupt(message) from error


def write_receipt(table: Table, request_id: str | None, answer: Receipt) -> None:
    """Keep the answer with what the request wrote; without an id there is nobody to ask again."""
    if request_id is not None:
        table.put(keys.receipt(request_id), records.encode(answer))
        table.put(keys.receipt_time(table.now, request_id), b"")
