"""`windlass move`: take what waits in one store to another."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

import click

from windlass.cli.asking import ask
from windlass.cli.audited import as_option, write_down
from windlass.cli.options import output_options, read_duration
from windlass.cli.output import GOOD, POOR, note, print_json, say
from windlass.cli.progress import progress_bar
from windlass.cli.reach import check_survives, open_existing
from windlass.client.client import Client
from windlass.client.mover import ONE_STORE, Carried
from windlass.client.mover import move as move_jobs
from windlass.client.mover import undo as undo_move
from windlass.client.spoken import counted
from windlass.config.masked import masked
from windlass.connect import connect, lead_to_one_store, without_creating
from windlass.core.errors import InvalidValue
from windlass.core.moving import Moved
from windlass.core.stats import QueueStats, total
from windlass.exit_codes import ExitCode

WAIT: Final = timedelta(seconds=30)
NAMED: Final = 10
"""How many things of a kind are named before the rest is only counted."""


@click.command()
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="[DST]", required=False)
@click.option("--wait", callback=read_duration, metavar="TIME", help="How long running jobs may take to end; 30s.")
@click.option("--plan", is_flag=True, help="Only tell what would go over.")
@click.option("--undo", is_flag=True, help="Let SRC take jobs again; what went over stays where it is.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_option
@output_options
def move(
    *,
    source: str,
    target: str | None,
    wait: timedelta | None,
    plan: bool,
    undo: bool,
    yes: bool,
    actor: str,
    as_json: bool,
) -> None:
    """Take what waits in one store to another.

    Waiting and scheduled jobs go from SRC to DST, with schedules, kv, unique keys and pauses. SRC takes nothing new
    from then on: its clients get StoreMoved, which names DST. Jobs that run there end there; after --wait those that
    have not ended are left out and listed. Finished jobs stay in SRC, to be looked at.

    It can be killed at any moment and called again: nothing is lost, and no job goes over twice. Ends with 1 when
    jobs were left out, running or with a damaged record; the same call takes along what has become of them.

    \b
        windlass move sqlite:///jobs.db sqlite:///new.db --yes
        windlass move sqlite:///jobs.db --undo
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    if undo:
        _check_undo(target, plan=plan)
        _tell_undone(asyncio.run(_undo(source, actor)), source, as_json=as_json)
        return
    if target is None:
        message = "say where to: windlass move SRC DST"
        raise click.UsageError(message)
    _check_two(source, target)
    if plan:
        _tell_plan(asyncio.run(_plan(source)), as_json=as_json)
        return
    _ask(source, target, yes=yes)
    carried = asyncio.run(_move(source, target, WAIT if wait is None else wait, actor))
    _tell_carried(carried, source, target, as_json=as_json)
    if carried.left or carried.damaged or carried.damaged_schedules:
        raise click.exceptions.Exit(ExitCode.FAILED)


def _check_undo(target: str | None, *, plan: bool) -> None:
    if target is not None or plan:
        message = "--undo is for one store, and does nothing but let it take jobs again: windlass move SRC --undo"
        raise click.UsageError(message)


def _check_two(source: str, target: str) -> None:
    """Refuse, before anything is opened or asked, what could not be moved, as far as the URLs tell it."""
    for url in (source, target):
        check_survives(connect(url))
    if source == target or lead_to_one_store(source, target):
        raise InvalidValue(ONE_STORE)


def _ask(source: str, target: str, *, yes: bool) -> None:
    if yes:
        return
    counts = _shown_counts(asyncio.run(_plan(source)))
    where = f"from {masked(source)} to {masked(target)}"
    ask(f"Move {counts} {where}? The first takes nothing new from then on.", yes=False, first="--plan")


async def _plan(source: str) -> list[QueueStats]:
    async with _existing(source, look=True) as client:
        return await client.store.stats()


async def _undo(source: str, actor: str) -> Moved | None:
    async with _existing(source) as client:
        moved = await undo_move(client)
        if moved is not None:
            await write_down(client, actor, "undo move", moved.to, {"move": moved.move})
        return moved


async def _move(source: str, target: str, wait: timedelta, actor: str) -> Carried:
    async with _existing(source) as leaving, connect(target) as arriving:
        waiting = total(await leaving.store.stats())
        so_far: dict[str, str] = {}
        with progress_bar("jobs", waiting.pending + waiting.scheduled) as advance:
            seen = 0

            def told(carried: Carried) -> None:
                nonlocal seen
                advance(carried.jobs - seen)
                seen = carried.jobs
                so_far.update(_counts(carried), interrupted="yes")

            try:
                carried = await move_jobs(leaving, arriving, to=masked(target), wait=wait.total_seconds(), told=told)
                so_far = _counts(carried)
            finally:
                # one that is interrupted has moved what it has moved
                if so_far:
                    await write_down(leaving, actor, "move", masked(target), so_far)
                    await write_down(arriving, actor, "take in", masked(source), so_far)
        return carried


def _counts(carried: Carried) -> dict[str, str]:
    return {"jobs": str(carried.jobs), "schedules": str(carried.schedules), "kv": str(carried.kv)}


@asynccontextmanager
async def _existing(url: str, *, look: bool = False) -> AsyncGenerator[Client]:
    client = connect(without_creating(url, look=look))
    check_survives(client)
    try:
        await open_existing(client, masked(url))
        yield client
    finally:
        await client.close()


def _tell_plan(queues: list[QueueStats], *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "queues": [
                    {"queue": each.queue, "waiting": each.pending + each.scheduled, "running": each.running}
                    for each in queues
                ]
            }
        )
        return
    say(f"{_shown_counts(queues)} would go over")


def _shown_counts(queues: list[QueueStats]) -> str:
    waiting = sum(queue.pending + queue.scheduled for queue in queues)
    running = sum(queue.running for queue in queues)
    text = f"{counted(waiting, 'waiting job')} of {counted(len(queues), 'queue')}"
    return f"{text} ({running:,} running)" if running else text


def _tell_undone(moved: Moved | None, source: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"undone": moved})
    elif moved is None:
        say(f"{masked(source)} was not moved: it takes jobs")
    else:
        say(f"{masked(source)} takes jobs again; what went to {moved.to} stays there")


def _tell_carried(carried: Carried, source: str, target: str, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "jobs": carried.jobs,
                "schedules": carried.schedules,
                "kv": carried.kv,
                "keys": carried.keys,
                "left": carried.left,
                "damaged": [{"id": job_id, "damage": damage} for job_id, damage in carried.damaged],
                "damaged_schedules": [{"id": name, "damage": damage} for name, damage in carried.damaged_schedules],
                "kept_schedules": carried.kept_schedules,
                "kept_kv": [key.decode(errors="backslashreplace") for key in carried.kept_kv],
            }
        )
        return
    counts = (
        f"{counted(carried.jobs, 'job')}, {counted(carried.schedules, 'schedule')}, {counted(carried.kv, 'kv value')}"
    )
    say(f"{counts} went to {masked(target)}", GOOD)
    _tell_kept("schedule", "there already and different, so that each store keeps its own", carried.kept_schedules)
    _tell_kept(
        "kv value",
        "there already and different, so that each store keeps its own",
        [key.decode(errors="backslashreplace") for key in carried.kept_kv],
    )
    if carried.left:
        _tell_kept("job", "still running and left out", carried.left)
        note("call it again when they have ended: what waits then goes over too")
    if carried.damaged or carried.damaged_schedules:
        _tell_damaged("job", carried.damaged)
        _tell_damaged("schedule", carried.damaged_schedules)
        note(f"repair the stored records in {masked(source)}, and call it again: they go over then")


def _tell_damaged(what: str, damaged: Sequence[tuple[str, str]]) -> None:
    if damaged:
        say(f"{counted(len(damaged), what)} stayed in the source, since the stored record is damaged:", POOR)
    for name, damage in damaged[:NAMED]:
        say(f"  {name}: {damage}")
    if len(damaged) > NAMED:
        say(f"  and {len(damaged) - NAMED:,} more")


def _tell_kept(what: str, why: str, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        say(f"{counted(len(names), what)} {why}: {', '.join(names[:NAMED])}{more}", POOR)
