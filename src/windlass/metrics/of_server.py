"""The numbers of one server, for whoever asks its process."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from windlass.engine.server import Server
from windlass.engine.tally import Counts, Pair, Tally
from windlass.metrics.exposition import gauge, histogram
from windlass.metrics.labels import RAW

NO_TALLY: Final = Tally()


class ServerCollector(Collector):
    """Tells what a server counts; may be asked from any thread, whatever the event loop does.

    It can be registered with the registry of a program that runs a server itself.
    """

    def __init__(self, server: Callable[[], Server | None]) -> None:
        """Ask the server that `server` returns at the time, which may be None while there is none yet."""
        self._server = server

    def collect(self) -> Iterable[Metric]:
        """Return what there is to tell."""
        server = self._server()
        tally = NO_TALLY if server is None else server.tally
        pairs = {Pair(pair.queue, pair.kind or RAW): counts for pair, counts in tally.pairs().items()}
        yield from _of_attempts(pairs)
        yield from _of_claims(tally)
        yield from _now(server)


def _of_attempts(pairs: dict[Pair, Counts]) -> Iterable[Metric]:
    ends = CounterMetricFamily(
        "windlass_worker_attempts",
        "Attempts that ended here, by how they did; lost: another one had the claim by then.",
        labels=("queue", "kind", "outcome"),
    )
    for pair, counts in pairs.items():
        for outcome, count in counts.ends.copy().items():
            ends.add_metric((*pair, outcome), count)
    yield ends
    yield histogram(
        "windlass_worker_wait_seconds",
        "How long jobs had waited when their attempts began, since they were due.",
        {pair: counts.waited.counts.copy() for pair, counts in pairs.items()},
        {pair: counts.waited.seconds for pair, counts in pairs.items()},
    )
    yield histogram(
        "windlass_worker_run_seconds",
        "How long attempts ran.",
        {pair: counts.ran.counts.copy() for pair, counts in pairs.items()},
        {pair: counts.ran.seconds for pair, counts in pairs.items()},
    )


def _of_claims(tally: Tally) -> Iterable[Metric]:
    yield CounterMetricFamily("windlass_worker_claims", "Jobs that were claimed.", value=tally.claimed)
    yield CounterMetricFamily(
        "windlass_worker_leases_lost", "Attempts whose lease ran out, or was taken, before their end.", value=tally.lost
    )
    yield CounterMetricFamily(
        "windlass_worker_rescued", "Jobs of others that this server took back.", value=tally.rescued
    )
    errors = CounterMetricFamily(
        "windlass_worker_store_errors", "Calls that the store did not do, each of which is repeated.", labels=("call",)
    )
    for call, count in tally.store_errors.items():
        errors.add_metric((call,), count)
    yield errors


def _now(server: Server | None) -> Iterable[Metric]:
    ready = server is not None and server.health().ready
    yield gauge("windlass_worker_running", "Jobs that run.", 0 if server is None else server.busy)
    yield gauge("windlass_worker_slots", "Jobs that may run at once.", 0 if server is None else server.slots)
    yield gauge(
        "windlass_worker_unsettled", "Ends of jobs that wait for the store.", 0 if server is None else server.unsettled
    )
    yield gauge("windlass_worker_ready", "Whether new work can be expected of the server.", ready)
