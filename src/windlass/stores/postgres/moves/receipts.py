"""Receipts: the answer to a call, for a caller whose reply was lost."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId, job_id
from windlass.kit.damage import DECODE_ERRORS, shown
from windlass.stores.postgres.moves.departure import refuse_if
from windlass.stores.postgres.work import Changes, Statement, Work

T = TypeVar("T")

_COMMITTED: Final = "committed"
_SEALED: Final = "sealed"


class Receipt(NamedTuple):
    """What a call that was done has answered, and when it was done."""

    reply: str | None
    at: datetime


def receipt(request_id: str) -> Work[Receipt | None]:
    """Return the answer that this request was given before, if it was."""
    rows = yield Statement("receipt", {"request_id": request_id})
    return Receipt(*rows[0]) if rows else None


def reply_of(request_id: str, reply: str, read: Callable[[str], T]) -> T:
    """Return what `read` finds in the reply of a receipt; raises `StoreCorrupt` where the reply is damaged."""
    try:
        return read(reply)
    except DECODE_ERRORS as error:
        raise StoreCorrupt(
            f"the receipt of the call {request_id!r} is damaged, in its reply: {shown(reply)} ({error}). The call was "
            "done before, and is not done again; what it was answered is lost"
        ) from None


def names_of(reply: str) -> list[JobId]:
    """Return the ids of jobs that a reply lists."""
    return [job_id(name) for name in reply.split(",")] if reply else []


def write_receipt(changes: Changes, request_id: str | None, reply: str) -> Work[None]:
    """Keep the answer with what the request wrote; without an id there is nobody to ask again.

    A request that was done before is refused here by the database, with all that its repetition wrote.
    """
    if request_id is not None:
        yield Statement("write_receipt", _receipt(changes, request_id, reply))


def write_receipt_unless_moved(changes: Changes, request_id: str, reply: str) -> Work[None]:
    """Keep the answer as `write_receipt`; in a store that was moved `StoreMoved` is raised, and all must be undone."""
    [(moved,)] = yield Statement("write_receipt_unless_moved", _receipt(changes, request_id, reply))
    refuse_if(moved)


def write_last(changes: Changes, request_id: str) -> Work[None]:
    """Keep with a caller's transaction that it was committed; it is found by `seal`."""
    yield Statement("write_receipt", _receipt(changes, request_id, _COMMITTED))


def seal(changes: Changes, request_id: str) -> Work[bool]:
    """Let a transaction that ended by `write_last` never be committed, and return that it was not.

    One that is under way is waited for. If it was committed, this is refused by the database.
    """
    yield Statement("write_receipt", _receipt(changes, request_id, _SEALED))
    return False


def unless_sealed(request_id: str) -> Work[bool]:
    """Return whether it was the transaction that was committed, and not a seal whose own reply was lost."""
    kept = yield from receipt(request_id)
    return kept is not None and reply_of(request_id, kept.reply or "", _is_commit)


def _receipt(changes: Changes, request_id: str, reply: str) -> dict[str, object]:
    return {"now": changes.now, "request_id": request_id, "reply": reply}


def _is_commit(reply: str) -> bool:
    if reply not in (_COMMITTED, _SEALED):
        message = f"it is neither {_COMMITTED!r} nor {_SEALED!r}"
        raise ValueError(message)
    return reply == _COMMITTED
