"""Settlements: what they bring along, and their answers as receipts keep them."""

from typing import Final, Literal, TypeAlias

from windlass.core.errors import UniqueConflict
from windlass.core.job import Failure
from windlass.core.names import MAX_ERROR, shortened
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.core.verdict import ToSucceeded

_NO_RESULT: Final = ToSucceeded()

KeptResult: TypeAlias = Settled | tuple[str, str | None, Literal["held", "payload", "claimed"]]
"""How a settlement was answered; a conflict is kept by its parts."""


def is_plain(settlement: Settlement) -> bool:
    """Whether a settlement is a success that brings nothing along."""
    _, _, verdict, _, then, kv = settlement
    return isinstance(verdict, ToSucceeded) and verdict == _NO_RESULT and not then and not kv


def failure_of(reason: str) -> Failure:
    """Return the reason of a cancellation, which is no exception, as deliveries keep why they ended."""
    return Failure(shortened(reason, MAX_ERROR))


def kept_result(result: SettleResult) -> KeptResult:
    """Return the answer to a settlement as receipts keep it."""
    if isinstance(result, Settled):
        return result
    if isinstance(result, UniqueConflict):
        return result.key, result.job_id, result.why
    raise TypeError(f"no settlement is answered with {type(result).__name__}")


def result_of(kept: KeptResult) -> SettleResult:
    """Return the answer that `kept_result` was given."""
    return UniqueConflict(*kept) if isinstance(kept, tuple) else kept
