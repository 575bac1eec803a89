"""Claim plan: from which queues a server claims, in which order, and how many jobs ahead of a free slot."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Final, NamedTuple

from windlass.core.errors import NotAtomicHere
from windlass.core.requests import ClaimRequest
from windlass.core.settings import Settings, Unset
from windlass.engine.config import Order, ServerConfig
from windlass.engine.served import Served

WINDOW: Final = 0.1
LONGEST: Final = 1.0
SHORTEST: Final = WINDOW / 10
"""Seconds over which a rate says something."""
MOST: Final = 2_000


class Line(NamedTuple):
    """One queue as a server works it; None among its `kinds` stands for raw jobs."""

    queue: str
    weight: float
    lease: timedelta
    kinds: frozenset[str | None]


class ClaimPlan:
    """Makes the requests of one server."""

    def __init__(self, lines: Sequence[Line], *, order: Order, worker: str, draw: Callable[[], float]) -> None:
        """Claim from `lines`: by chance and weight, strictly in their order, or by priority over all of them."""
        self._lines = tuple(lines)
        self._order = order
        self._worker = worker
        self._draw = draw
        if order == "priority":
            # they are claimed together, with the shortest of their leases: by that they have to be renewed
            shortest = min((line.lease for line in lines), default=timedelta(0))
            self._lines = tuple(line._replace(lease=shortest) for line in lines)
        self.queues: Sequence[str] = [line.queue for line in self._lines]
        """Every queue that is worked."""
        self.leases: Mapping[str, timedelta] = {line.queue: line.lease for line in self._lines}
        self.lease_seconds: Mapping[str, float] = {line.queue: line.lease.total_seconds() for line in self._lines}
        self._fixed = _joined(self._lines, worker) if order == "strict" or len(self._lines) <= 1 else None

    @property
    def merges_queues(self) -> bool:
        """Whether the most urgent job of several queues is asked for, which a store must find in one step."""
        return self._order == "priority" and any(len(request.queues) > 1 for request in self.requests(1))

    def requests(self, limit: int) -> list[ClaimRequest]:
        """Return what to ask for now, one after the other, until `limit` jobs are claimed."""
        if self._fixed is not None:
            requests = self._fixed
        elif self._order == "priority":
            requests = _merged(self._lines, self._worker)
        else:
            # each queue is first as often as its weight says (Efraimidis and Spirakis)
            drawn = sorted(self._lines, key=lambda line: self._draw() ** (1 / line.weight), reverse=True)
            requests = _joined(drawn, self._worker)
        return [request._replace(limit=limit) for request in requests]


class LookAhead:
    """Allows what the server finishes in a tenth of a second, by its last rate: so much it will soon begin.

    Where claims take long it is what is finished during two of them, or else the slots would be empty meanwhile.
    """

    def __init__(self) -> None:
        """Allow nothing yet."""
        self._samples: deque[tuple[float, int]] = deque()
        self._window = WINDOW

    def took(self, seconds: float) -> None:
        """Note how long a claim took that brought jobs."""
        self._window = min(max(WINDOW, 2 * seconds), LONGEST)

    def most(self, now: float, finished: int) -> int:
        """Return how many may wait, when `finished` jobs have ended in all."""
        samples = self._samples
        window = self._window
        while samples and samples[0][0] < now - window:
            samples.popleft()
        samples.append((now, finished))
        since, before = samples[0]
        return min(MOST, int((finished - before) * window / max(now - since, SHORTEST)))


def plan_of(app: Served, config: ServerConfig, worker: str) -> ClaimPlan:
    """Return what a server claims for an app; raises `NotAtomicHere` where the store cannot do it in one step."""
    client = app.client
    kinds: frozenset[str | None] = frozenset(app.handlers)
    weights = config.queues or dict.fromkeys(sorted(app.queues), 1)
    lines = [
        Line(queue, weight, _lease(queue, config, client.settings), kinds | {None} if queue in app.consumers else kinds)
        for queue, weight in weights.items()
        if queue in app.consumers or kinds
    ]
    plan = ClaimPlan(lines, order=config.order, worker=worker, draw=client.rng.random)
    if plan.merges_queues and not client.store.features.atomic_across_queues:
        raise NotAtomicHere(f"order='priority' over {len(lines)} queues", "use order='weighted' or 'strict'")
    return plan


def _lease(queue: str, config: ServerConfig, settings: Settings) -> timedelta:
    return settings.of(queue).lease if isinstance(config.lease, Unset) else config.lease


def _joined(lines: Sequence[Line], worker: str) -> list[ClaimRequest]:
    """Return one request for each run of queues that are asked alike."""
    return [
        ClaimRequest([line.queue for line in run], 0, lease, kinds, worker)
        for (lease, kinds), run in groupby(lines, key=lambda line: (line.lease, line.kinds))
    ]


def _merged(lines: Sequence[Line], worker: str) -> list[ClaimRequest]:
    """Return one request for all queues of the same kinds; all have one lease."""
    lease = lines[0].lease
    by_kinds: dict[frozenset[str | None], list[str]] = {}
    for line in lines:
        by_kinds.setdefault(line.kinds, []).append(line.queue)
    return [ClaimRequest(queues, 0, lease, kinds, worker, by_priority=True) for kinds, queues in by_kinds.items()]
