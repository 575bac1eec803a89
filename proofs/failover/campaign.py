"""What is done to the pair: again and again its primary is lost, or refuses writes, and its standby takes over."""

import random
import time
from dataclasses import dataclass, field
from typing import Final, Literal

from proofs.children import Children
from proofs.failover.loss import Loss, read_loss
from proofs.failover.probe import Held
from proofs.failover.work import Failover, FailoverWork, Load
from proofs.serving import Place
from tests.postgres.pair import Pair

Way = Literal["kill", "immediate", "read-only"]
WAYS: tuple[Way, ...] = ("kill", "immediate", "read-only")


@dataclass(frozen=True)
class Plan:
    failovers: int = 20
    """With a standby that every commit waits for."""
    unwaited: int = 6
    """With one that is not waited for."""
    unreplicated: int = 40
    """Jobs that are acknowledged while the standby receives nothing, before it takes over."""
    load: Load = field(default_factory=Load)


class Campaign(FailoverWork):
    """Servers and producers on a pair that fails over and over."""

    def __init__(self, place: Place, pair: Pair, plan: Plan, children: Children) -> None:
        super().__init__(place, pair.url, plan.load, children)
        self._pair = pair
        self._plan = plan
        self._chance = random.Random(plan.load.seed)
        self.losses: Final[list[Loss]] = []

    def _fail_over(self, number: int) -> None:
        self._let_work(self._load.jobs_each * self._chance.uniform(0.5, 1.0))
        if self._pair.synchronous:
            self._fail_over_waited(WAYS[number % len(WAYS)])
        else:
            self._fail_over_unwaited(WAYS[number % 2])

    def _fail_over_waited(self, way: Way) -> None:
        good, expired = self.probe.before(more=False)
        self._take_over(way)
        self._let_work(self._load.jobs_each / 4)
        self._pair.join()
        self.probe.after(Held(good, expired, None))

    def _fail_over_unwaited(self, way: Way) -> None:
        """Let the standby miss the last changes, and look afterwards what exactly it had missed."""
        good, expired = self.probe.before(more=True)
        self._pair.catch_up()
        self._pair.part()
        unreplicated = self.probe.unreplicated()
        self._look()
        enough = self._acknowledged.total() + self._plan.unreplicated
        self._grant(self._plan.unreplicated)
        if not self._eventually(lambda: self._acknowledged.total() >= enough):
            self.done.failed.append("too few jobs came while the standby received nothing")
        self._take_over(way)
        loss = read_loss(self._pair)
        self.losses.append(loss)
        # nobody will ever end them, and producers bring as many as are ended
        self._lost += len(loss.jobs.keys() - self._reader.jobs().keys())
        self._let_work(self._load.jobs_each / 4)
        self._pair.join()
        self.probe.after(Held(good, expired, unreplicated))

    def _take_over(self, way: Way) -> None:
        # producers have something to bring then, and at once afterwards
        self._grant(self._load.ahead)
        self._eventually(lambda: bool(self._inside and self._calling), 2)
        inside, calling = len(self._inside), len(self._calling)
        ended_at = time.monotonic()
        if way == "read-only":
            self._pair.refuse_writes()
        else:
            self._pair.fence(way)
        fenced_at = time.monotonic()
        back_at = self._pair.promote()
        self.done.failovers.append(Failover(way, ended_at, fenced_at, back_at, inside, calling))
        self._look()
        self._grant(self._load.ahead)
