"""`windlass stats`: what there is, what there ever was, and the last hour."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import click

from windlass.cli.complete_names import complete_queues
from windlass.cli.errors import NameNotFound, no_such_queue
from windlass.cli.options import output_options, store_argument, store_options
from windlass.cli.output import BAD, Cell, print_fields, print_json, room, say
from windlass.cli.reach import Choice, looked_at
from windlass.cli.sparkline import sparkline
from windlass.cli.times import length
from windlass.core.stats import QueueStats, Totals

MINUTES: Final = 60
MINUTE: Final = timedelta(minutes=1)
NOW: Final = ("pending", "scheduled", "running", "succeeded", "dead", "cancelled")
DRAWN: Final = ("enqueued", "succeeded", "dead", "retried")
WIDE: Final = 90


class Seen(NamedTuple):
    """The counts, and those of each minute of the last hour, the oldest first; the last one is not over yet."""

    now: datetime
    stats: QueueStats
    minutes: Sequence[tuple[datetime, Totals]]


@click.command()
@click.option("--queue", metavar="QUEUE", shell_complete=complete_queues, help="Of this queue alone.")
@store_argument
@store_options
@output_options
def stats(*, queue: str | None, app: str | None, url: str | None, as_json: bool) -> None:
    """Count the jobs by state, in all, and minute by minute.

    The minutes are those of the last hour; the last one is not over yet.
    """
    seen = asyncio.run(_look(Choice(app, url), queue))
    if as_json:
        print_json(_document(seen))
    else:
        _print(seen)


async def _look(choice: Choice, queue: str | None) -> Seen:
    async with looked_at(choice) as (client, *_):
        counts = await client.stats(queue)
        if queue is not None and queue not in (known := await client.queues()):
            raise NameNotFound(no_such_queue(queue, known))
        now = client.clock.now()
        this_minute = now.replace(second=0, microsecond=0)
        first = this_minute - MINUTE * (MINUTES - 1)
        found = {first + MINUTE * number: Totals() for number in range(MINUTES)}
        for each in await client.store.minutes(since=first, until=this_minute + MINUTE):
            if queue in (None, each.queue) and each.minute in found:
                found[each.minute] = found[each.minute].plus(each.counts)
        return Seen(now, counts, list(found.items()))


def _print(seen: Seen) -> None:
    counts = seen.stats
    lines: list[tuple[str, Cell | str]] = [
        (name, Cell(f"{getattr(counts, name):,}", BAD if name == "dead" and counts.dead else "")) for name in NOW
    ]
    if counts.oldest_waiting is not None:
        lines.append(("oldest", f"waits {length(max(seen.now - counts.oldest_waiting, timedelta()))}"))
    if counts.queue is not None:
        lines.append(("paused", "yes" if counts.paused else "no"))
    print_fields(lines)
    say("")
    ever = ", ".join(f"{value:,} {name}" for name, value in counts.totals._asdict().items())
    print_fields([("ever", ever)])
    say("")
    hour = [(name, [getattr(each, name) for _, each in seen.minutes]) for name in DRAWN]
    print_fields([("last hour", ""), *((name, f"{_drawn(values)} {sum(values):,}") for name, values in hour)])


def _drawn(values: Sequence[int]) -> str:
    """Return a bar for each minute, or for two where there is little room."""
    if room() < WIDE:
        values = [sum(pair) for pair in zip(values[::2], values[1::2], strict=True)]
    return sparkline(values)


def _document(seen: Seen) -> dict[str, Any]:
    counts = seen.stats
    return {
        "queue": counts.queue,
        "paused": counts.paused,
        **{name: getattr(counts, name) for name in NOW},
        "oldest_waiting": counts.oldest_waiting,
        "totals": counts.totals._asdict(),
        "minutes": [{"minute": minute, **each._asdict()} for minute, each in seen.minutes],
    }
