"""What is done to a master that Sentinels watch: again and again it is lost, or told to step back."""

import random
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, Literal

from proofs.children import Children
from proofs.failover.probe import Held
from proofs.failover.work import Failover, FailoverWork, Load
from proofs.ledger import read
from proofs.readers.redis import connect
from proofs.serving import Place
from tests.redis.sentinels import Sentinels

Way = Literal["kill", "step back"]
WAYS: Final[tuple[Way, ...]] = ("step back", "kill")
CAUGHT_UP: Final = 10_000
"""Milliseconds that a replica may take until it has all."""


@dataclass(frozen=True)
class Plan:
    waited: int = 10
    """Failovers with `?wait=1`."""
    unwaited: int = 10
    """And without."""
    oldest: float = 1.0
    """Seconds before a kill within which everything was acknowledged that may be lost."""
    load: Load = field(default_factory=lambda: Load(pause=0.8))


class Campaign(FailoverWork):
    """Servers and producers on a master and its replica, which change places over and over."""

    def __init__(self, place: Place, sentinels: Sentinels, load: Load, children: Children, *, waits: bool) -> None:
        super().__init__(place, place.url, load, children)
        self._sentinels = sentinels
        self._waits = waits
        self._chance = random.Random(load.seed)

    def _fail_over(self, number: int) -> None:
        self._let_work(self._load.jobs_each * self._chance.uniform(0.5, 1.0))
        good, expired = self.probe.before(more=False)
        self._let_catch_up()
        self._take_over(WAYS[number % len(WAYS)])
        # nobody will ever end what was lost, and producers bring as many as are ended
        told = {entry.job for entry in read(self._place.ledger) if entry.event == "ok"}
        self._lost = len(told - self._reader.jobs().keys())
        self._let_work(self._load.jobs_each / 4)
        self.probe.after(Held(good, expired, None))

    def _let_catch_up(self) -> None:
        """Let the replica have all that was done until now."""
        with closing(connect(self._sentinels.master.url)) as client:
            together = client.pipeline(transaction=False)
            together.set("proof-caught-up", time.time())
            together.wait(1, CAUGHT_UP)
            if together.execute()[1] < 1:
                self.done.failed.append("the replica did not catch up")

    def _take_over(self, way: Way) -> None:
        # producers have something to bring then, and at once afterwards
        self._grant(self._load.ahead)
        self._eventually(lambda: bool(self._inside and self._calling), 10)
        inside, calling = len(self._inside), len(self._calling)
        ended_at = time.monotonic()
        if way == "kill":
            self._sentinels.kill_master()
        else:
            self._sentinels.failover()
        fenced_at = time.monotonic() if way == "kill" else ended_at
        promoted_at = self._sentinels.wait_until_promoted()
        self._sentinels.join()
        # one who is told to step back goes on until it follows; and calls that wait need somebody who follows
        back_at = promoted_at if way == "kill" and not self._waits else time.monotonic()
        self.done.failovers.append(Failover(way, ended_at, fenced_at, back_at, inside, calling))
        self._look()
        self._grant(self._load.ahead)
