"""Settlements: what they bring along, and their answers as receipts keep them."""

from typing import Final, TypeAlias

from windlass.core.errors import IdConflict, UniqueConflict
from windlass.core.job import Failure
from windlass.core.names import MAX_ERROR, shortened
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.core.verdict import ToSucceeded

_NO_RESULT: Final = ToSucceeded()

KeptResult: TypeAlias = Settled | list[str | None]
"""How a settlement was answered; a conflict is kept by its parts: three of a unique key, four of an id."""


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
        return [result.key, result.job_id, result.why]
    if isinstance(result, IdConflict):
        return [result.job_id, result.queue, result.kind, result.tenant]
    raise TypeError(f"no settlement is answered with {type(result).__name__}")


def result_of(kept: KeptResult) -> SettleResult:
    """Return the answer that `kept_result` was given."""
    match kept:
        case Settled():
            return kept
        case [str(key), job_id, ("held" | "payload" | "claimed") as why]:
            return UniqueConflict(key, job_id, why)
        case [str(job_id), str(queue), kind, tenant]:
            return IdConflict(job_id, queue, kind, tenant)
        case _:
            raise TypeError(f"no answer to a settlement is kept as {kept!r}")
