"""When the jobs of a delayed measurement are due."""

from datetime import datetime, timedelta

DELAYED = 200
AFTER = timedelta(seconds=0.5)
"""From the first enqueue to the first job due: all of them must be enqueued before it."""
SPREAD = timedelta(seconds=2)


def run_times(count: int, now: datetime) -> list[datetime]:
    """Return `count` times, evenly spread over two seconds that begin half a second after `now`."""
    return [now + AFTER + number * SPREAD / count for number in range(count)]
