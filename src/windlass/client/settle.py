"""Settling: how a claim ended becomes one write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windlass.borrow.borrow import borrow
from windlass.client.cancelled import Cancelled
from windlass.client.failure import cut
from windlass.client.prepare import Preparer, checked_kv
from windlass.core.clock import Clock, Rng
from windlass.core.errors import ClaimLost, EncodeError, InvalidValue, PayloadTooLarge, StoreUnavailable, WindlassError
from windlass.core.job import Claim, Failure, NewJob
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.core.settings import Settings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.verdict import (
    GaveUp,
    Outcome,
    Returned,
    ToCancelled,
    ToDead,
    ToRetry,
    ToSucceeded,
    Verdict,
    verdict,
)

Kv = Mapping[bytes | str, bytes | None]

_ENDS: Final[Mapping[type[Verdict], State]] = {
    ToSucceeded: State.SUCCEEDED,
    ToDead: State.DEAD,
    ToCancelled: State.CANCELLED,
}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.25
_NO_RESULT: Final = Returned()
_SUCCEEDED: Final = ToSucceeded()


@dataclass(frozen=True, slots=True)
class Extras:
    """What commits with a settlement, and in whose transaction."""

    then: Sequence[NewJob] = ()
    kv: Kv | None = None
    connection: object = None


NO_EXTRAS: Final = Extras()


class Settler:
    """Settles with the settings of one client."""

    def __init__(self, settings: Settings, preparer: Preparer, *, clock: Clock, rng: Rng) -> None:
        """Decide by the retry policy and the retention in `settings`."""
        self._settings = settings
        self._clock = clock
        self._preparer = preparer
        self._rng = rng
        self._retention = settings.retention

    def returned(self, result: object) -> Returned:
        """Return the end of a claim whose work was done."""
        return _NO_RESULT if result is None else Returned(*self._preparer.encode(result, "result"))

    async def settle(self, store: Store, claim: Claim, outcome: Outcome, extras: Extras) -> None:
        """Write that `claim` ended by `outcome`, if it has not; raises `ClaimLost`, or why it was refused."""
        if checked_claim(claim).settled:
            return
        settlement = self._settlement(claim, outcome, extras)
        if extras.connection is None:
            [result] = await store.settle((settlement,))
            if _is_locked(result):
                result = await self._settle_once_free(store, settlement, result)
        else:
            [result] = await store.join(borrow(extras.connection)).settle((settlement,))
        _raise_refusal(claim, result)
        # in a caller's transaction it is settled only if that commits, which is not known here
        if extras.connection is None:
            claim.settled = True
            if isinstance(event := getattr(claim, "cancelled", None), Cancelled):
                event.settle()

    async def _settle_once_free(self, store: Store, settlement: Settlement, result: SettleResult) -> SettleResult:
        """Try again until the job is no longer locked by somebody, as long as the store's other calls may take."""
        deadline = self._clock.monotonic() + store.features.locked_for.total_seconds()
        pause = _FIRST_PAUSE
        while _is_locked(result) and self._clock.monotonic() + pause < deadline:
            await self._clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            [result] = await store.settle((settlement,))
        return result

    def _settlement(self, claim: Claim, outcome: Outcome, extras: Extras) -> Settlement:
        job = claim.job
        if outcome is _NO_RESULT and extras is NO_EXTRAS:
            # nearly every settlement there is: nothing to decide
            return Settlement(job.id, claim.token, _SUCCEEDED, self._retention.keeps(job.queue, State.SUCCEEDED))
        draw = self._rng.random()
        decided = verdict(job, outcome, retry=self._settings.of(job.queue).retry, draw=draw)
        end = _ENDS.get(type(decided))
        keep = end is None or self._retention.keeps(job.queue, end)
        if extras is NO_EXTRAS:
            return Settlement(job.id, claim.token, decided, keep)
        # checked also when they are dropped: a mistake shows at the first call, not at the last attempt
        then = self._preparer.prepare(extras.then, job.id)
        kv = None if extras.kv is None else checked_kv(extras.kv)
        if isinstance(decided, ToRetry):
            return Settlement(job.id, claim.token, decided, keep)
        return Settlement(job.id, claim.token, decided, keep, then, kv)


def done_in_vain(error: EncodeError | PayloadTooLarge) -> GaveUp:
    """Return the end of a claim whose result cannot be kept: the job is dead, since to do it again would not help."""
    text = cut(f"the work was done, but its result cannot be stored: {error}")
    return GaveUp(Failure(text, type(error).__name__, module=type(error).__module__), error)


def checked_claim(claim: object) -> Claim:
    """Return `claim` if it is one."""
    if isinstance(claim, Claim):
        return claim
    message = f"this takes the Claim that client.claim() gave, not {type(claim).__name__}"
    raise InvalidValue(message)


def _is_locked(result: SettleResult) -> bool:
    return isinstance(result, StoreUnavailable) and result.retryable


def _raise_refusal(claim: Claim, result: SettleResult) -> None:
    if result is Settled.LOST:
        raise ClaimLost(claim.job.id)
    if isinstance(result, WindlassError):
        raise result
