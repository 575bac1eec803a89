"""The tables of a frame: heads, widths and cells, for a screen of any width."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from windlass.cli.job_shown import STYLES
from windlass.cli.output import BAD, FAINT, GOOD, POOR, STRONG, Cell
from windlass.cli.sparkline import sparkline
from windlass.cli.top.frame import Frame, Rate, ended_by_minute
from windlass.client.claims import DEAD_AFTER
from windlass.client.error_groups import died_at, error_name
from windlass.client.server_details import memory_of, presence, slots_of
from windlass.client.spoken import progress_text
from windlass.core.job import Job
from windlass.core.looks import ServerRecord
from windlass.core.states import State
from windlass.core.stats import QueueStats

WIDE: Final = 110
"""Columns from which a table shows all that it could."""
VERY_WIDE: Final = 150
WHOLE_ID: Final = 36
SHORT_ID: Final = 18
"""Characters that tell an id from any other that was made in this century: its time, and 12 random bits."""
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


class Column(NamedTuple):
    """One column: `width` 0 takes what the others leave."""

    head: str
    width: int
    right: bool = False


class Row(NamedTuple):
    """A line of a table; `key` is what it is about."""

    key: str
    cells: Sequence[Cell]


class Table(NamedTuple):
    """One table of the screen."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]


def queue_table(frame: Frame, rates: Mapping[str, Rate], width: int) -> Table:
    """Return the queues, by name."""
    wide = width >= WIDE
    spark = 16 if wide else 8
    columns = [Column("QUEUE", 0), Column("PENDING", 7, right=True), Column("RUNNING", 7, right=True)]
    columns += [Column("SCHEDULED", 9, right=True), Column("DEAD", 6, right=True), Column("OLDEST", 6, right=True)]
    columns += [Column("IN/S", 6, right=True), Column("OUT/S", 6, right=True)]
    if wide:
        columns += [Column("SUCCEEDED", 9, right=True), Column("CANCELLED", 9, right=True)]
    columns.append(Column("ENDED BY MINUTE" if wide else "BY MIN", spark))
    rows = [_queue_row(frame, row, rates, wide=wide, spark=spark) for row in frame.queues if row.queue is not None]
    return Table(f"Queues {len(rows):,}", columns, rows)


def _queue_row(frame: Frame, row: QueueStats, rates: Mapping[str, Rate], *, wide: bool, spark: int) -> Row:
    name = row.queue or ""
    rate = rates.get(name, Rate())
    cells = [
        Cell(f"{name} (paused)" if row.paused else name, POOR if row.paused else STRONG),
        _number(row.pending),
        _number(row.running, "cyan"),
        _number(row.scheduled, FAINT),
        _number(row.dead, BAD),
        Cell("" if row.oldest_waiting is None else _age(frame.now - row.oldest_waiting)),
        Cell(per_second(rate.enqueued) if rate.enqueued else "-"),
        Cell(per_second(rate.ended), GOOD) if rate.ended else Cell("-"),
    ]
    if wide:
        cells += [_number(row.succeeded, FAINT), _number(row.cancelled, FAINT)]
    cells.append(Cell(sparkline(ended_by_minute(frame, name, spark)), GOOD))
    return Row(name, cells)


def job_table(frame: Frame, width: int, wanted: str = "") -> Table:
    """Return the jobs that run and the newest, or those that are wanted."""
    wide, whole = width >= WIDE, width >= VERY_WIDE
    columns = [
        Column("ID", WHOLE_ID if whole else SHORT_ID),
        Column("KIND", 24 if wide else 0),
        Column("QUEUE", 14 if wide else 10),
    ]
    columns += [Column("STATE", 9), Column("ATT", 5, right=True), Column("WHEN", 12)]
    if wide:
        columns.append(Column("NOTE", 0))
    rows = [_job_row(job, frame.now, wide=wide, whole=whole) for job in frame.jobs]
    title = f"Jobs: {wanted}" if wanted else "Jobs: running, then the newest"
    if not frame.all_jobs_seen:
        title += " (not all were looked at)"
    return Table(title, columns, rows)


def _job_row(job: Job, now: datetime, *, wide: bool, whole: bool) -> Row:
    cells = [
        Cell(job.id if whole else job.id[:SHORT_ID], STRONG),
        Cell(job.kind or "(raw)"),
        Cell(job.queue),
        Cell(job.state, STYLES[job.state]),
        Cell(f"{job.attempt}/{job.max_attempts}"),
        Cell(_when(job, now), FAINT),
    ]
    if wide:
        cells.append(Cell(_note(job), BAD if job.state is State.DEAD else FAINT))
    return Row(job.id, cells)


def server_table(frame: Frame, width: int, dead_after: timedelta = DEAD_AFTER) -> Table:
    """Return the servers, the silent ones marked."""
    wide = width >= WIDE
    columns = [Column("SERVER", 0), Column("RUNNING", 9, right=True), Column("SEEN", 6, right=True)]
    columns += [Column("UP", 6, right=True), Column("HOST", 24 if wide else 12), Column("PID", 8, right=True)]
    columns.append(Column("MEMORY", 8, right=True))
    if wide:
        columns += [Column("VERSION", 8), Column("QUEUES", 30)]
    rows = [_server_row(server, frame.now, dead_after, wide=wide) for server in frame.servers]
    return Table(f"Servers {len(rows):,}", columns, rows)


def _server_row(server: ServerRecord, now: datetime, dead_after: timedelta, *, wide: bool) -> Row:
    word = presence(server, now, dead_after)
    silent = word in ("silent", "gone")
    slots = slots_of(server)
    cells = [
        Cell(server.name if word == "live" else f"{server.name} ({word})", BAD if silent else STRONG),
        Cell(f"{server.running:,}" if slots is None else f"{server.running:,}/{slots:,}"),
        Cell(_age(now - server.seen_at), BAD if silent else ""),
        Cell(_age(now - server.started_at), FAINT),
        Cell(server.host),
        Cell(str(server.pid), FAINT),
        Cell(_megabytes(server)),
    ]
    if wide:
        cells += [Cell(server.version, FAINT), Cell(" ".join(server.queues), FAINT)]
    return Row(server.id, cells)


def dead_table(frame: Frame, width: int) -> Table:
    """Return the newest of the dead by what they died of, the most frequent first."""
    wide = width >= WIDE
    groups = dead_groups(frame.dead)
    columns = [Column("JOBS", 6, right=True), Column("ERROR", 0), Column("KIND", 24 if wide else 16)]
    columns += [Column("QUEUE", 14 if wide else 10), Column("LAST", 6, right=True)]
    rows = [
        Row(
            key,
            [
                _number(len(jobs), BAD),
                Cell(_error(jobs[0])),
                Cell(jobs[0].kind or "(raw)"),
                Cell(jobs[0].queue),
                Cell(_age(frame.now - died_at(jobs[0])), FAINT),
            ],
        )
        for key, jobs in groups.items()
    ]
    return Table(f"Dead by error, of the last {len(frame.dead):,}", columns, rows)


def dead_groups(dead: Sequence[Job]) -> dict[str, list[Job]]:
    """Return dead jobs by queue, kind and type of error, the largest group first."""
    groups: dict[str, list[Job]] = {}
    for job in dead:
        groups.setdefault(f"{job.queue}|{job.kind or ''}|{error_name(job.last_error)}", []).append(job)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def wanted_of_dead(key: str) -> str:
    """Return what is typed to list the jobs of a group of dead ones; by their error too, where it is one word."""
    queue, kind, error = key.split("|", 2)
    wanted = f"state:dead queue:{queue}" + (f" kind:{kind}" if kind else "")
    return wanted if " " in error or "#" in error else f"{wanted} error:{error}"


def _number(count: int, style: str = "") -> Cell:
    return Cell(compact(count), style if count else FAINT)


def compact(count: float) -> str:
    """Return a number in at most six characters."""
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if count >= limit:
            return f"{count / limit:.3g}{unit}" if count < limit * 1000 else "lots"
    return f"{count:,.0f}" if count < 100_000 else f"{count / 1000:.0f}k"  # noqa: PLR2004


def per_second(rate: float) -> str:
    """Return a rate in at most six characters; small ones to a tenth."""
    return f"{rate:.1f}" if rate < 10 else compact(rate)  # noqa: PLR2004


def _age(span: timedelta) -> str:
    """Return a duration in at most six characters: `40s`, `12m`, `1h20m`, `3d`."""
    seconds = max(0, round(span.total_seconds()))
    for (unit, size), (below, part) in pairwise(_UNITS):
        count, rest = divmod(seconds, size)
        # of one or two hours the minutes count, of seven they do not
        if 0 < count < 3 and rest >= part:  # noqa: PLR2004
            return f"{count}{unit}{rest // part}{below}"
        if count:
            return f"{count:,}{unit}"
    return f"{seconds}s"


def _when(job: Job, now: datetime) -> str:
    match job.state:
        case State.SCHEDULED:
            return f"in {_age(job.run_at - now)}"
        case State.PENDING:
            return f"waits {_age(now - job.run_at)}"
        case State.RUNNING:
            return f"for {_age(now - (job.claimed_at or now))}"
        case _:
            return f"{_age(now - (job.finished_at or job.created_at))} ago"


def _note(job: Job) -> str:
    if job.state is not State.RUNNING:
        return _error(job) if job.last_error else ""
    asked = "asked to stop; " * job.cancel_requested
    if job.progress is not None:
        return f"{asked}{progress_text(job.progress)}"
    return f"{asked}by {job.worker}"


def _error(job: Job) -> str:
    return next(iter((job.last_error or "no error was stored").strip().splitlines()), "an empty error")


def _megabytes(server: ServerRecord) -> str:
    told = memory_of(server)
    return "" if told is None else f"{told // 2**20:,} MB"
