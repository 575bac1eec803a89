"""The line above all tables."""

from collections.abc import Mapping
from datetime import timedelta

from windlass.cli.top.frame import Frame, Rate
from windlass.cli.top.rows import compact, per_second
from windlass.client.server_details import is_live, slots_of
from windlass.client.spoken import counted
from windlass.core.stats import total


def summary(frame: Frame, rates: Mapping[str, Rate], dead_after: timedelta) -> str:
    """Return what counts over all queues and servers."""
    live = [server for server in frame.servers if is_live(server, frame.now, dead_after)]
    slots = [slots_of(server) for server in live]
    jobs = total(frame.queues)
    of = f"/{sum(each or 0 for each in slots):,}" if slots and all(each is not None for each in slots) else ""
    parts = [
        counted(len(live), "server"),
        f"running {compact(jobs.running)}{of}",
        f"pending {compact(jobs.pending)}",
        f"dead {compact(jobs.dead)}",
        f"in {per_second(sum(rate.enqueued for rate in rates.values()))}/s",
        f"out {per_second(sum(rate.ended for rate in rates.values()))}/s",
    ]
    if frame.moved is not None:
        parts.insert(0, f"MOVED to {frame.moved.to}")
    return "  ".join(parts)
