"""The text that Prometheus reads."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from windlass.core.stats import BOUNDS
from windlass.engine.tally import Pair
from windlass.version import VERSION

L = TypeVar("L", bound=tuple[str, ...])

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of it."""
_EDGES: Final = (*map(str, BOUNDS), "+Inf")


def registry_with(*collectors: Collector) -> CollectorRegistry:
    """Return a registry of its own, with these collectors, what the system knows of this process, and its version.

    It has nothing of what the program around it counts.
    """
    made = CollectorRegistry()
    for collector in (_Version(), *collectors):
        made.register(collector)
    ProcessCollector(registry=made)
    return made


def written(registry: CollectorRegistry) -> bytes:
    """Return all that a registry has, as text."""
    return generate_latest(registry)


def gauge(name: str, meaning: str, value: float) -> Metric:
    """Return a number that may fall."""
    return GaugeMetricFamily(name, meaning, value=value)


def gauges(name: str, meaning: str, labels: Sequence[str], values: Mapping[L, float]) -> Metric:
    """Return numbers that may fall, by the values of their labels."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values_of_labels, value in values.items():
        family.add_metric(values_of_labels, value)
    return family


def histogram(
    name: str, meaning: str, ranges: Mapping[Pair, Sequence[int]], seconds: Mapping[Pair, float] | None = None
) -> Metric:
    """Return times by queue and kind: how many lie in each range of `BOUNDS`, and their sums where they are known."""
    family = HistogramMetricFamily(name, meaning, labels=("queue", "kind"))
    for pair, counts in ranges.items():
        buckets = list(zip(_EDGES, _added_up(counts), strict=True))
        if seconds is not None:
            family.add_metric(pair, buckets, seconds[pair])
            continue
        family.add_metric(pair, buckets, None)
        family.samples.append(Sample(f"{name}_count", pair._asdict(), buckets[-1][1]))
    return family


def _added_up(counts: Sequence[int]) -> Iterable[float]:
    total = 0
    for count in counts:
        total += count
        yield total


class _Version(Collector):
    def collect(self) -> Iterable[Metric]:
        """Tell which release it is."""
        family = GaugeMetricFamily("windlass_build_info", "The release of Windlass; always 1.", labels=("version",))
        family.add_metric((VERSION,), 1)
        yield family
