"""The numbers of a whole store, for whoever asks a process that serves it."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeVar, get_args

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from windlass.client.claims import DEAD_AFTER
from windlass.client.client import Client
from windlass.client.server_details import Presence, presence
from windlass.core.errors import WindlassError
from windlass.core.looks import ServerRecord
from windlass.core.states import State
from windlass.core.stats import BOUNDS, MinuteCounts, QueueStats, TimingCount, Totals
from windlass.core.store import Store
from windlass.engine.tally import Pair
from windlass.metrics.exposition import gauge, gauges, histogram, registry_with, written
from windlass.metrics.kind_counts import KindCounts
from windlass.metrics.labels import Labels
from windlass.metrics.rising import Added, Highest

logger = logging.getLogger("windlass")

L = TypeVar("L", bound=tuple[str, ...])

FRESH: Final = 5.0
"""Seconds that a look at the store counts: however many ask, it is looked at this often at most."""
PATIENCE: Final = 5.0
"""Seconds after which a store that does not answer counts as away."""
MINUTE: Final = timedelta(minutes=1)
AGAIN: Final = 2 * MINUTE
"""How far back a minute may still grow: a transaction counts in the minute of its begin."""
FARTHEST: Final = timedelta(hours=1)
"""What happened before, while nobody asked, is not added: it is in the totals of its queue."""
_EVENTS: Final = Totals._fields


class Found(NamedTuple):
    """What a look at the store found."""

    queues: Sequence[QueueStats]
    servers: Sequence[ServerRecord]
    at: datetime


class StoreMetrics(Collector):
    """Looks at a store when somebody asks, and not again for five seconds.

    Without the store it tells so, and what is known of this process, and what was added up before.
    """

    def __init__(self, client: Client, *, dead_after: timedelta = DEAD_AFTER) -> None:
        """Look at the store of `client`; a server is gone after a silence of `dead_after`."""
        self._client = client
        self._dead_after = dead_after
        self._labels = Labels()
        self._registry = registry_with(self)
        self._kinds = KindCounts(client.clock, self._labels)
        self._found: Found | None = None
        self._answered = True
        self._totals = Highest[tuple[str, str]]()
        self._events = Added[tuple[str, str, str], tuple[datetime, str, str, str]]()
        self._timings = Added[tuple[str, Pair, int], tuple[datetime, str, str, str, int]]()
        self._since: datetime | None = None
        self._looked_at = float("-inf")
        self._took = 0.0
        self._look: asyncio.Future[None] | None = None

    async def written(self) -> bytes:
        """Return all numbers as text; it never fails by the store."""
        if self._client.clock.monotonic() - self._looked_at >= FRESH:
            # all who ask at the same time share one look
            look = self._look = self._look or asyncio.ensure_future(self._ask())
            await asyncio.shield(look)
        return written(self._registry)

    async def _ask(self) -> None:
        began = self._client.clock.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._client.open()
                self._found = await self._look_at(self._client.store)
            self._answered = True
            await self._kinds.look(self._client.store, self._found.at)
        except Exception as error:  # noqa: BLE001 - whatever a store raises: numbers are asked for just when something is wrong
            self._found = None
            self._tell_of(error)
        finally:
            self._looked_at = self._client.clock.monotonic()
            self._took = self._looked_at - began
            self._look = None

    def _tell_of(self, error: Exception) -> None:
        """Say it once, and not at every look until the store is back."""
        level = logging.WARNING if self._answered else logging.DEBUG
        self._answered = False
        trace = None if isinstance(error, (WindlassError, TimeoutError)) else error
        text = str(error) or f"no answer within {PATIENCE:g} s"
        logger.log(level, "metrics go without the store, until it is back: %s", text, exc_info=trace)

    async def _look_at(self, store: Store) -> Found:
        # the time of the store, which stamps what is counted and who was seen
        now = (await store.schedules(())).now
        this = now.replace(second=0, microsecond=0)
        since = this - AGAIN if self._since is None else max(self._since, this - FARTHEST)
        # an end that is too late costs nothing, one that is too early the last moments
        until = this + AGAIN
        queues, servers = await store.stats(), await store.servers()
        minutes = await store.minutes(since=since, until=until)
        timings = await store.timings(since=since, until=until)
        self._since = max(since, this - AGAIN)
        self._totals.look(self._totals_of(queues))
        self._events.look(dict(self._of_minutes(minutes)))
        self._timings.look(dict(self._of_timings(timings)))
        return Found(queues, servers, now)

    def _totals_of(self, queues: Sequence[QueueStats]) -> Mapping[tuple[str, str], int]:
        totals = Counter[tuple[str, str]]()
        for row in queues:
            for event, count in zip(_EVENTS, row.totals, strict=True):
                totals[self._labels.queue(row.queue or ""), event] += count
        return totals

    def _of_minutes(
        self, minutes: Sequence[MinuteCounts]
    ) -> Iterable[tuple[tuple[datetime, str, str, str], tuple[tuple[str, str, str], int]]]:
        for minute, queue, kind, counts in minutes:
            pair = self._labels.pair(queue, kind)
            for event, count in zip(_EVENTS, counts, strict=True):
                yield (minute, queue, kind, event), ((pair.queue, pair.kind, event), count)

    def _of_timings(
        self, timings: Sequence[TimingCount]
    ) -> Iterable[tuple[tuple[datetime, str, str, str, int], tuple[tuple[str, Pair, int], int]]]:
        for minute, queue, kind, what, place, count in timings:
            if 0 <= place <= len(BOUNDS):
                yield (minute, queue, kind, what, place), ((what, self._labels.pair(queue, kind), place), count)

    # telling

    def collect(self) -> Iterable[Metric]:
        """Return what the last look found."""
        found = self._found
        yield gauge("windlass_store_up", "Whether the store has answered.", found is not None)
        yield gauge("windlass_store_look_seconds", "How long the last look at the store took.", self._took)
        if found is not None:
            yield from self._of_queues(found)
            yield from self._kinds.collect()
            yield _servers(found, self._dead_after)
        yield _counter(
            "windlass_queue_events",
            "What ever happened in a queue; the number is the store's.",
            ("queue", "event"),
            self._totals.values,
        )
        yield _counter(
            "windlass_kind_events",
            "What happened to the jobs of a kind, since this process was first asked.",
            ("queue", "kind", "event"),
            self._events.sums,
        )
        yield histogram(
            "windlass_job_wait_seconds",
            "How long jobs had waited when their attempts began, since they were due.",
            self._ranges("waited"),
        )
        yield histogram("windlass_job_run_seconds", "How long attempts ran.", self._ranges("ran"))

    def _of_queues(self, found: Found) -> Iterable[Metric]:
        depth, oldest, paused = Counter[tuple[str, str]](), dict[str, float](), dict[str, bool]()
        for row in found.queues:
            queue = self._labels.queue(row.queue or "")
            for state in State:
                depth[queue, state.value] += getattr(row, state.value)
            age = 0.0 if row.oldest_waiting is None else (found.at - row.oldest_waiting).total_seconds()
            oldest[queue] = max(age, oldest.get(queue, 0.0))
            paused[queue] = row.paused or paused.get(queue, False)
        yield gauges("windlass_queue_depth", "Jobs of a queue, by state.", ("queue", "state"), depth)
        ages = {(queue,): age for queue, age in oldest.items()}
        meaning = "How long the job that was due first has waited, of those that are pending."
        yield gauges("windlass_queue_oldest_waiting_seconds", meaning, ("queue",), ages)
        stopped = {(queue,): float(is_paused) for queue, is_paused in paused.items()}
        yield gauges("windlass_queue_paused", "Whether a queue is paused.", ("queue",), stopped)

    def _ranges(self, wanted: str) -> dict[Pair, list[int]]:
        ranges: dict[Pair, list[int]] = {}
        for (what, pair, place), count in self._timings.sums.items():
            if what == wanted:
                ranges.setdefault(pair, [0] * (len(BOUNDS) + 1))[place] += count
        return ranges


def _servers(found: Found, dead_after: timedelta) -> Metric:
    seen = Counter(presence(server, found.at, dead_after) for server in found.servers)
    counts = {(state,): seen[state] for state in get_args(Presence)}
    return gauges("windlass_servers", "Servers, by whether they were seen lately.", ("state",), counts)


def _counter(name: str, meaning: str, labels: Sequence[str], values: Mapping[L, float]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=labels)
    for values_of_labels, value in values.items():
        family.add_metric(values_of_labels, value)
    return family
