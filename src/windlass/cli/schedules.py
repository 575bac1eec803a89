"""`windlass schedules`: see and steer the rules that make jobs in time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

import click

from windlass.cli.audited import as_option, write_down
from windlass.cli.complete_names import complete_schedules
from windlass.cli.job_words import Words, check_words, job_options, new_job
from windlass.cli.known_commands import DefaultGroup
from windlass.cli.moment import read_moment
from windlass.cli.options import output_options, read_duration, store_argument, store_options
from windlass.cli.output import note, print_fields, print_json, print_table, room, say
from windlass.cli.reach import Choice, looked_at, reached
from windlass.cli.schedule_shown import HEADS, NARROW_HEADS, WIDE, document, fields, narrow_row, place_of, row
from windlass.cli.times import distance, shown_at
from windlass.client.client import Client
from windlass.client.wanted import CATCH_UP, OVERLAP
from windlass.config.forms import Span
from windlass.core.errors import InvalidValue, ScheduleNotFound
from windlass.core.names import check_name
from windlass.core.rule import Rule, read_rule
from windlass.core.schedule import CatchUp, Overlap, Schedule
from windlass.exit_codes import ExitCode
from windlass.system import SystemClock
from windlass.zone import zone

Act: TypeAlias = Callable[[Client, str], Awaitable[tuple[str, dict[str, object]]]]
"""Does something to one schedule; returns what it was, for people and for programs."""

PREVIEWED: Final = 5


class Doing(NamedTuple):
    """Who does what, for the audit."""

    actor: str
    action: str


@click.group(cls=DefaultGroup, default="list")
def schedules() -> None:
    """See and steer the schedules.

    A schedule is a rule, cron or interval, that makes jobs in time. Without a command they are listed.
    """


@schedules.command("list")
@store_argument
@store_options
@output_options
def list_(*, app: str | None, url: str | None, as_json: bool) -> None:
    """List the schedules.

    `active` makes jobs; `paused` waits to be resumed; `orphaned` is declared by code, and by no live server; `over` has
    no further due time; `damaged` has a stored record that cannot be read, and makes no jobs until it is put again.
    """
    now, found, declared = asyncio.run(_look(Choice(app, url)))
    if as_json:
        print_json({"schedules": [document(each) for each in found]})
    elif found and room() < WIDE:
        print_table(NARROW_HEADS, [narrow_row(each, now) for each in found], folds=["ID", "RULE"])
    elif found:
        print_table(HEADS, [row(each, now) for each in found], folds=["ID", "RULE", "JOB"])
    elif declared:
        note(f"no schedules here yet: the first worker that starts writes those of the app, {', '.join(declared)}")
    else:
        note("no schedules here: `windlass schedules put` makes one, and so does @app.every above a handler")


@schedules.command()
@click.argument("schedule_id", metavar="ID", shell_complete=complete_schedules)
@store_options
@output_options
def show(*, schedule_id: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Show one schedule, its job, and when it is due next."""
    now, found, _ = asyncio.run(_look(Choice(app, url)))
    chosen = [each for each in found if each.id == schedule_id]
    if not chosen:
        raise ScheduleNotFound(schedule_id, [each.id for each in found])
    if as_json:
        print_json(document(chosen[0]))
    else:
        print_fields(fields(chosen[0], now))


@schedules.command()
@click.argument("schedule_id", metavar="ID")
@click.option("--cron", metavar="EXPR", help="When: five or six fields of cron, or @daily and the like.")
@click.option("--every", callback=read_duration, metavar="TIME", help="When: each so often, as in 30s, 5m, 2h, 7d.")
@click.option("--timezone", default="UTC", show_default=True, metavar="ZONE", help="Whose clock cron goes by.")
@click.option(
    "--catch-up",
    type=click.Choice(list(CATCH_UP)),
    default="one",
    show_default=True,
    help="What becomes of due times that no server was there for.",
)
@click.option(
    "--overlap",
    type=click.Choice(list(OVERLAP)),
    default="allow",
    show_default=True,
    help="Whether it makes a job while its last one is unfinished.",
)
@job_options
@as_option
@store_options
@output_options
def put(
    *,
    schedule_id: str,
    actor: str,
    cron: str | None,
    every: timedelta | None,
    timezone: str,
    catch_up: CatchUp,
    overlap: Overlap,
    app: str | None,
    url: str | None,
    as_json: bool,
    **described: Any,  # noqa: ANN401 - the fields of `Words`
) -> None:
    """Write a schedule, new or over the one with this id.

    The job is described as for `windlass enqueue`: by KIND and NAME=VALUE of an app, or raw. While the rule and the
    time zone stay the same, so does the next run.

    \b
        windlass schedules put nightly report --cron '30 2 * * *' --app tasks:app
        windlass schedules put poll --every 5m --queue mail --payload poll
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    # before the job: a rule that stands alone would be taken for its kind
    rule = _given_rule(cron, every)
    read_rule(rule, zone(timezone))
    words = Words(**described)
    check_words(words)

    async def write() -> Schedule:
        async with reached(Choice(app, url), create=True, app_needed=words.by_app) as (client, loaded):
            job = new_job(words, loaded)
            made = await client.schedules.put(
                schedule_id, rule, job, timezone=timezone, catch_up=catch_up, overlap=overlap
            )
            detail = {"rule": made.rule, "timezone": made.timezone, "queue": made.queue}
            await write_down(client, actor, "put schedule", made.id, detail)
            return made

    written = asyncio.run(write())
    if as_json:
        print_json(document(written))
    else:
        say(f"{written.id}: {_next_run(written)}")


@schedules.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_schedules)
@as_option
@store_options
@output_options
def remove(*, ids: Sequence[str], actor: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Remove schedules; the jobs that they made stay.

    One that code declares comes back with the next start of a server that declares it: pause it, or take it out of the
    code.
    """

    async def act(client: Client, schedule_id: str) -> tuple[str, dict[str, object]]:
        found = await client.schedules.get(schedule_id)
        if found is None or not await client.schedules.remove(schedule_id):
            raise ScheduleNotFound(schedule_id, [each.id for each in await client.schedules.list()])
        text = "removed; a server that declares it puts it back when it starts" if found.declared else "removed"
        return text, {"declared": found.declared}

    _each(ids, Choice(app, url), act, Doing(actor, "remove schedule"), as_json=as_json)


@schedules.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_schedules)
@as_option
@store_options
@output_options
def pause(*, ids: Sequence[str], actor: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Let schedules make no jobs until they are resumed.

    Due times in between are never caught up.
    """

    async def act(client: Client, schedule_id: str) -> tuple[str, dict[str, object]]:
        await client.schedules.pause(schedule_id)
        return "paused", {}

    _each(ids, Choice(app, url), act, Doing(actor, "pause schedule"), as_json=as_json)


@schedules.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_schedules)
@as_option
@store_options
@output_options
def resume(*, ids: Sequence[str], actor: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Let paused schedules go on with their next due time."""

    async def act(client: Client, schedule_id: str) -> tuple[str, dict[str, object]]:
        await client.schedules.resume(schedule_id)
        found = await client.schedules.get(schedule_id)
        if found is None:
            return "resumed, and removed by somebody else", {"next_run_at": None}
        return _next_run(found), {"next_run_at": found.next_run_at}

    _each(ids, Choice(app, url), act, Doing(actor, "resume schedule"), as_json=as_json)


@schedules.command("run-now")
@click.argument("ids", nargs=-1, required=True, metavar="ID...", shell_complete=complete_schedules)
@as_option
@store_options
@output_options
def run_now(*, ids: Sequence[str], actor: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Make one job of each schedule now.

    Also of a paused one; the next run stays as it is. With `--overlap skip` none is made while the last one is
    unfinished.
    """

    async def act(client: Client, schedule_id: str) -> tuple[str, dict[str, object]]:
        done = await client.schedules.run_now(schedule_id)
        text = f"job {done.id}" if done.created else f"no new job: {done.id} is unfinished, and overlap is skip"
        return text, {"job_id": done.id, "created": done.created}

    _each(ids, Choice(app, url), act, Doing(actor, "run schedule"), as_json=as_json)


@schedules.command("next")
@click.argument("expr", nargs=-1, required=True, metavar="EXPR")
@click.option("--timezone", default="UTC", show_default=True, metavar="ZONE", help="Whose clock it goes by.")
@click.option(
    "--count", type=click.IntRange(1, 1000), default=PREVIEWED, show_default=True, metavar="N", help="How many."
)
@click.option("--after", callback=read_moment, metavar="TIME", help="From then on, and not from now.")
@output_options
def next_(*, expr: Sequence[str], timezone: str, count: int, after: datetime | None, as_json: bool) -> None:
    """Preview the due times of a rule: cron, or `every 5m`.

    Nothing is opened or written. Offsets tell what a change of the clocks does to it.

    \b
        windlass schedules next '30 2 * * *' --timezone Europe/Berlin
        windlass schedules next every 90m
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    now = SystemClock().now()
    rule = _rule(" ".join(expr), timezone)
    times = due_times(rule, after or now, count)
    if as_json:
        print_json({"rule": rule.text, "timezone": timezone, "next": times})
        return
    place = zone(timezone)
    print_table(
        ["DUE", "UTC", "FROM NOW"],
        [[shown_at(at, place), f"{at:%Y-%m-%d %H:%M:%S}", distance(at, now)] for at in times],
    )
    if len(times) < count:
        note("there is no further due time")


def _given_rule(cron: str | None, every: timedelta | None) -> str | timedelta:
    match cron, every:
        case str(), None:
            return cron
        case None, timedelta():
            return every
        case None, None:
            message = "give the rule, by --cron '30 2 * * *' or by --every 5m"
        case _:
            message = "give --cron or --every, not both"
    raise click.UsageError(message)


def due_times(rule: Rule, after: datetime, count: int) -> list[datetime]:
    """Return the first `count` due times after a moment, fewer when there are no more."""
    found: list[datetime] = []
    at = rule.following(after)
    while at is not None and len(found) < count:
        found.append(at)
        at = rule.following(at)
    return found


def _rule(text: str, timezone: str) -> Rule:
    place = zone(timezone)
    first, _, rest = text.strip().partition(" ")
    if first.lower() != "every":
        if not rest and _is_span(first):
            message = f"{first!r} is no rule: write `every {first}` for an interval"
            raise InvalidValue(message)
        return read_rule(text, place)
    span = Span(zero=False).read(rest.strip(), "the interval")
    assert isinstance(span, timedelta)  # noqa: S101 - what the form of a duration returns
    return read_rule(span, place)


def _is_span(text: str) -> bool:
    try:
        Span(zero=False).read(text, "it")
    except InvalidValue:
        return False
    return True


async def _look(choice: Choice) -> tuple[datetime, list[Schedule], Sequence[str]]:
    """Return the time, the schedules, and the ids of those that the app declares."""
    async with looked_at(choice) as (client, app, _):
        declared = [] if app is None else sorted(app.schedules)
        return client.clock.now(), await client.schedules.list(), declared


def _each(ids: Sequence[str], choice: Choice, act: Act, doing: Doing, *, as_json: bool) -> None:
    """Do the same to each, also when one is not there; end with the code that says so."""
    names = [check_name(each, "schedule id") for each in dict.fromkeys(ids)]
    done: list[dict[str, object]] = []
    missing: list[str] = []

    async def work() -> None:
        async with reached(choice, changes=True) as (client, _):
            for name in names:
                try:
                    text, facts = await act(client, name)
                except ScheduleNotFound as error:
                    missing.append(name)
                    note(f"error: {error}")
                    continue
                done.append({"id": name, **facts})
                detail = {fact: str(value) for fact, value in facts.items()}
                await write_down(client, doing.actor, doing.action, name, detail)
                if not as_json:
                    say(f"{name}: {text}")

    asyncio.run(work())
    if as_json:
        print_json({"done": done, "missing": missing})
    if missing:
        raise click.exceptions.Exit(ExitCode.NOT_FOUND)


def _next_run(schedule: Schedule) -> str:
    if schedule.paused:
        return "paused"
    if schedule.next_run_at is None:
        return "there is no further due time"
    at = schedule.next_run_at
    return f"next run {shown_at(at, place_of(schedule))} ({distance(at, SystemClock().now())})"
