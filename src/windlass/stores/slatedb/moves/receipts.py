"""Receipts: the first reply to a request, for a caller whose reply was lost."""

from collections.abc import Mapping
from typing import Any, Final

from windlass.core.commands import ClaimJobs, EnqueueJobs, SettleClaims, UnpackJobs
from windlass.core.errors import StoreCorrupt
from windlass.core.store_calls import Command
from windlass.kit.damage import DECODE_ERRORS
from windlass.kit.settlements import kept_result, result_of
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.moves.claim import claim_again
from windlass.stores.slatedb.records import Receipt
from windlass.stores.slatedb.table import Table

NAMES: Final[Mapping[type[Command[Any]], str]] = {
    EnqueueJobs: "enqueue",
    ClaimJobs: "claim",
    SettleClaims: "settle",
    UnpackJobs: "unpack",
}
"""What the receipts of each command are named by, before the request id: two commands may have the same id."""


async def first_reply(table: Table, command: Command[Any], request_id: str) -> Any:  # noqa: ANN401 - of any kind
    """Return the first reply to a request; None if there was none."""
    receipt = await _read(table, _name(command, request_id))
    match command:
        case ClaimJobs():
            before = receipt.claimed
            return None if before is None else await claim_again(table, command, request_id, before)
        case SettleClaims():
            return None if receipt.settled is None else [result_of(kept) for kept in receipt.settled]
        case UnpackJobs():
            return receipt.unpacked
        case _:
            return receipt.enqueued


def keep_reply(table: Table, command: Command[Any], request_id: str, reply: Any) -> None:  # noqa: ANN401 - as above
    """Keep the reply to a request together with what the request wrote."""
    receipt = _receipt(command, reply)
    if receipt is not None:
        name = _name(command, request_id)
        table.put(keys.receipt(name), records.encode(receipt))
        table.put(keys.receipt_time(table.now, name), b"")


def _name(command: Command[Any], request_id: str) -> str:
    return f"{NAMES[type(command)]}:{request_id}"


async def _read(table: Table, name: str) -> Receipt:
    found = await table.value(keys.receipt(name))
    try:
        return Receipt() if found is None else records.receipt(found)
    except DECODE_ERRORS as error:
        message = f"what request {name!r} was answered cannot be read ({error}): nobody knows what became of it"
        raise StoreCorrupt(message) from error


def _receipt(command: Command[Any], reply: Any) -> Receipt | None:  # noqa: ANN401 - as above
    match command:
        case ClaimJobs():
            return Receipt(claimed=[(claim.job.id, claim.token) for claim in reply.jobs]) if reply.jobs else None
        case SettleClaims():
            # a damaged record is no reply that can be kept: a repeat looks at the record again
            damaged = any(isinstance(result, StoreCorrupt) for result in reply)
            return None if damaged else Receipt(settled=list(map(kept_result, reply)))
        case UnpackJobs():
            return Receipt(unpacked=reply)
        case _:
            return Receipt(enqueued=reply)
