"""`windlass queues`: what each queue holds, and whether it is worked."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import click

from windlass.cli.audited import as_option, write_down
from windlass.cli.complete_names import complete_queues
from windlass.cli.errors import NameNotFound, no_such_queue
from windlass.cli.known_commands import DefaultGroup
from windlass.cli.options import output_options, store_argument, store_options
from windlass.cli.output import BAD, GOOD, POOR, STRONG, Cell, note, print_json, print_table, room, say
from windlass.cli.reach import Choice, looked_at, reached
from windlass.cli.times import length
from windlass.core.names import check_name
from windlass.core.stats import MinuteCounts, QueueStats, Totals

HEADS: Final = (
    "QUEUE", "STATE", "PENDING", "SCHEDULED", "RUNNING", "SUCCEEDED", "DEAD", "CANCELLED", "OLDEST", "IN/MIN",
    "OUT/MIN", "ENQUEUED EVER",
)  # fmt: skip
NARROW_HEADS: Final = ("QUEUE", "PENDING", "SCHEDULED", "RUNNING", "DEAD", "OLDEST", "IN/MIN", "OUT/MIN")
WIDE: Final = 130
MINUTE: Final = timedelta(minutes=1)


class Seen(NamedTuple):
    """The queues, and what happened on each in the last whole minute."""

    now: datetime
    queues: Sequence[QueueStats]
    minute: dict[str, Totals]


@click.group(cls=DefaultGroup, default="list")
def queues() -> None:
    """See the queues, pause and resume them.

    Without a command they are listed.
    """


@queues.command("list")
@store_argument
@store_options
@output_options
def list_(*, app: str | None, url: str | None, as_json: bool) -> None:
    """List the queues, what they hold, and what came and went in the last whole minute.

    OLDEST is how long the job that is due longest has waited.
    """
    seen = asyncio.run(_look(Choice(app, url)))
    if as_json:
        print_json({"queues": [_document(seen, each) for each in seen.queues]})
    elif not seen.queues:
        note("no queues here: the first job of a queue makes it")
    elif room() < WIDE:
        print_table(
            NARROW_HEADS, [_narrow_row(seen, each) for each in seen.queues], folds=["QUEUE"], numbers=NARROW_HEADS[1:]
        )
    else:
        print_table(HEADS, [_row(seen, each) for each in seen.queues], folds=["QUEUE"], numbers=HEADS[2:])


@queues.command()
@click.argument("names", nargs=-1, required=True, metavar="QUEUE...", shell_complete=complete_queues)
@click.option("--yes", is_flag=True, help="Also pause a queue that has never had a job.")
@as_option
@store_options
@output_options
def pause(*, names: Sequence[str], yes: bool, actor: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Give no job of these queues to anybody until they are resumed.

    Jobs that run go on, and new ones are taken. It outlives every process.
    """
    asyncio.run(_set_paused(names, Choice(app, url), actor, paused=True, unknown=yes))
    _tell(names, as_json=as_json, word="paused")


@queues.command()
@click.argument("names", nargs=-1, required=True, metavar="QUEUE...", shell_complete=complete_queues)
@as_option
@store_options
@output_options
def resume(*, names: Sequence[str], actor: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Give the jobs of these queues out again."""
    asyncio.run(_set_paused(names, Choice(app, url), actor, paused=False, unknown=False))
    _tell(names, as_json=as_json, word="resumed")


def _tell(names: Sequence[str], *, as_json: bool, word: str) -> None:
    if as_json:
        print_json({word: list(dict.fromkeys(names))})
        return
    for name in dict.fromkeys(names):
        say(f"{name}: {word}")


async def _set_paused(names: Sequence[str], choice: Choice, actor: str, *, paused: bool, unknown: bool) -> None:
    """Pause or resume each; none is, when one of the names is wrong."""
    wanted = [check_name(name, "queue") for name in dict.fromkeys(names)]
    async with reached(choice, changes=True) as (client, _):
        known = await client.queues()
        for name in wanted:
            if name not in known and not unknown:
                advice = "; --yes pauses it before its first job" if paused else ""
                raise NameNotFound(f"{no_such_queue(name, known)}{advice}")
        for name in wanted:
            await (client.pause(name) if paused else client.resume(name))
            await write_down(client, actor, "pause" if paused else "resume", name)


async def _look(choice: Choice) -> Seen:
    async with looked_at(choice) as (client, *_):
        now = client.clock.now()
        minute = now.replace(second=0, microsecond=0)
        counted = await client.store.minutes(since=minute - MINUTE, until=minute)
        return Seen(now, await client.store.stats(), by_queue(counted))


def by_queue(counted: Sequence[MinuteCounts]) -> dict[str, Totals]:
    """Return what happened on each queue, over all kinds and minutes."""
    found: dict[str, Totals] = {}
    for each in counted:
        found[each.queue] = found.get(each.queue, Totals()).plus(each.counts)
    return found


def _row(seen: Seen, queue: QueueStats) -> list[Cell]:
    into, out = _rates(seen, queue)
    return [
        Cell(queue.queue or "", STRONG),
        Cell("paused", POOR) if queue.paused else Cell("open", GOOD),
        Cell(f"{queue.pending:,}"),
        Cell(f"{queue.scheduled:,}"),
        Cell(f"{queue.running:,}"),
        Cell(f"{queue.succeeded:,}"),
        Cell(f"{queue.dead:,}", BAD if queue.dead else ""),
        Cell(f"{queue.cancelled:,}"),
        Cell(_oldest(seen, queue)),
        Cell(f"{into:,}"),
        Cell(f"{out:,}"),
        Cell(f"{queue.totals.enqueued:,}"),
    ]


def _narrow_row(seen: Seen, queue: QueueStats) -> list[Cell]:
    into, out = _rates(seen, queue)
    return [
        Cell(queue.queue or "", STRONG, below="paused" if queue.paused else ""),
        Cell(f"{queue.pending:,}"),
        Cell(f"{queue.scheduled:,}"),
        Cell(f"{queue.running:,}"),
        Cell(f"{queue.dead:,}", BAD if queue.dead else ""),
        Cell(_oldest(seen, queue)),
        Cell(f"{into:,}"),
        Cell(f"{out:,}"),
    ]


def _oldest(seen: Seen, queue: QueueStats) -> str:
    at = queue.oldest_waiting
    return "" if at is None else length(max(seen.now - at, timedelta()))


def _rates(seen: Seen, queue: QueueStats) -> tuple[int, int]:
    counts = seen.minute.get(queue.queue or "", Totals())
    return counts.enqueued, counts.succeeded + counts.dead + counts.cancelled


def _document(seen: Seen, queue: QueueStats) -> dict[str, Any]:
    oldest = queue.oldest_waiting
    age = None if oldest is None else max(0.0, (seen.now - oldest).total_seconds())
    return {
        "queue": queue.queue,
        "paused": queue.paused,
        "pending": queue.pending,
        "scheduled": queue.scheduled,
        "running": queue.running,
        "succeeded": queue.succeeded,
        "dead": queue.dead,
        "cancelled": queue.cancelled,
        "oldest_waiting": oldest,
        "oldest_age": age,
        "totals": queue.totals._asdict(),
        "last_minute": seen.minute.get(queue.queue or "", Totals())._asdict(),
    }
