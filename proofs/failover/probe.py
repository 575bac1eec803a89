"""Claims made by hand before a failover and settled after it: those that hold must be accepted, all others refused."""

from typing import NamedTuple

import windlass
from proofs.ledger import Ledger
from proofs.serving import Place
from windlass import Claim, ClaimLost, WindlassError
from windlass.blocking import BlockingClient

QUEUE = "by-hand"
LONG, SHORT = 120.0, 1.0
"""Seconds of a lease that outlives a failover, and of one that has run out soon after."""
PATIENCE = 30.0


class Held(NamedTuple):
    """Claims of before a failover."""

    good: Claim
    """The standby has it, and its lease holds."""
    expired: Claim
    """The standby has it, and its lease runs out."""
    unreplicated: Claim | None
    """The standby has the job, and does not know of the claim."""


class Probe:
    """One client that lives through every failover of a campaign, and what it was answered."""

    def __init__(self, url: str, place: Place) -> None:
        self._client: BlockingClient = windlass.connect_sync(url)
        self._ledger = Ledger(place.ledger, "by hand")
        self._waiting: list[str] = []
        self.jobs: set[str] = set()
        self.accepted = 0
        """Claims of before that were settled after."""
        self.refused = 0
        """Claims that somebody else had meanwhile, and whose settlement was refused."""
        self.refused_of_same_number = 0
        """Those among them where the other one's claim has the same number of delivery."""
        self.wrong: list[str] = []

    def before(self, *, more: bool) -> tuple[Claim, Claim]:
        """Claim two jobs, and with `more` enqueue another one for a claim that the standby never hears of."""
        for _ in range(3 if more else 2):
            done = self._client.enqueue(QUEUE, b"")
            self._ledger.write("invoked", note=f"by hand: {done.id}")
            self._ledger.write("ok", done.id, note=f"by hand: {done.id}")
            self.jobs.add(done.id)
        return self._claim(LONG), self._claim(SHORT)

    def unreplicated(self) -> Claim:
        """Claim the third one."""
        return self._claim(LONG)

    def after(self, held: Held) -> None:
        """Settle all of them, after others have claimed what was not held any more."""
        self._settle(held.good)
        self.accepted += 1
        stale = [held.expired] if held.unreplicated is None else [held.expired, held.unreplicated]
        again = {claim.job.id: claim for claim in (self._claim(LONG) for _ in stale)}
        for claim in stale:
            self._refuse(claim, again.get(claim.job.id))
        for claim in again.values():
            self._settle(claim)

    def close(self) -> None:
        self._client.close()
        self._ledger.close()

    def _claim(self, lease: float) -> Claim:
        claim = self._client.claim(QUEUE, lease=lease, wait=PATIENCE)
        if claim is None:
            message = f"no job came by hand within {PATIENCE:g} s"
            raise RuntimeError(message)
        return claim

    def _settle(self, claim: Claim) -> None:
        self._ledger.write("begun", claim.job.id, delivery=claim.delivery, note="by hand", token=claim.token)
        self._ledger.write("ended", claim.job.id, delivery=claim.delivery, token=claim.token)
        try:
            self._client.ack(claim)
        except WindlassError as error:
            self.wrong.append(f"{claim} was refused: {error!r}")

    def _refuse(self, claim: Claim, other: Claim | None) -> None:
        if other is None:
            self.wrong.append(f"{claim} was not given to anybody else")
            return
        try:
            self._client.ack(claim)
        except ClaimLost:
            self.refused += 1
            self.refused_of_same_number += claim.delivery == other.delivery
        else:
            self.wrong.append(f"{claim} was accepted, although {other} holds it")
