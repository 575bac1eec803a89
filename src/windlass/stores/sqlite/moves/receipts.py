"""Requests by their ids, and receipts: the reply to a request, for a caller that did not receive it."""

from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from windlass.core.errors import StoreCorrupt
from windlass.core.store_calls import Command
from windlass.stores.sqlite.transaction import Transaction

C = TypeVar("C", bound=Command[Any])
T = TypeVar("T")


class SqliteRequest(NamedTuple, Generic[C]):
    """A command, and the request id by which a repeat of it is known."""

    command: C
    request_id: str | None = None


def receipt(tx: Transaction, request_id: str | None, reply: type[T]) -> T | None:
    """Return the answer that this request was given before, if it was; raises `StoreCorrupt` for a damaged one."""
    if request_id is None:
        return None
    row = tx.row("receipt", {"request_id": request_id})
    if row is None:
        return None
    try:
        return msgspec.json.decode(row[0], type=reply)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise StoreCorrupt(
            f"the stored answer to request {request_id} is damaged ({error}): whether it was done before is not known, "
            "and it was not done again"
        ) from error


def write_receipt(tx: Transaction, request_id: str | None, reply: object) -> None:
    """Keep the answer with what the request wrote; without an id there is nobody to ask again."""
    if request_id is not None:
        text = msgspec.json.encode(reply).decode()
        tx.run("write_receipt", {"request_id": request_id, "now": tx.now, "reply": text})
