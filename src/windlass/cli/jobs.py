"""`windlass jobs`: see jobs, and change their course."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import click

from windlass.app.app import App
from windlass.cli.change_options import change_jobs, change_options, read_asked
from windlass.cli.job_changes import cancelling, deleting, rescheduling, retrying
from windlass.cli.job_filter import filter_options, in_words
from windlass.cli.job_follow import follow
from windlass.cli.job_list import found_jobs, page_options, print_jobs
from windlass.cli.job_shown import (
    HISTORY_HEADS,
    NARROW_HISTORY_HEADS,
    WIDE,
    document,
    fields,
    history_row,
    log_text,
    narrow_history_row,
)
from windlass.cli.known_commands import DefaultGroup
from windlass.cli.moment import read_moment
from windlass.cli.options import output_options, read_duration, store_argument, store_options
from windlass.cli.output import BAD, FAINT, STRONG, note, print_fields, print_json, print_table, print_text, room, say
from windlass.cli.reach import Choice, looked_at
from windlass.cli.why import why
from windlass.client.job_ids import found_id
from windlass.core.duration import later
from windlass.core.errors import JobNotFound, UnknownKind
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.states import State
from windlass.exit_codes import ExitCode
from windlass.system import SystemClock

_LOG_SHOWN: Final = 200


@click.group(cls=DefaultGroup, default="list")
def jobs() -> None:
    """See jobs, and change their course.

    Without a command they are listed, the newest first.
    """


jobs.add_command(why)


@jobs.command("list")
@filter_options
@page_options
@store_argument
@store_options
@output_options
def list_(
    *,
    app: str | None,
    url: str | None,
    limit: int,
    before: str | None,
    as_json: bool,
    **chosen: Any,  # noqa: ANN401 - the fields of `JobFilter`
) -> None:
    """List jobs, the newest first.

    A list is shown after a fifth of a second with what was found until then, and says how to go on.

    \b
        windlass jobs --state dead --since 1h --url sqlite:///jobs.db
        windlass jobs --queue email --text 4711 --limit 5 --url sqlite:///jobs.db
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    wanted = JobFilter(**chosen)
    found = asyncio.run(found_jobs(Choice(app, url), wanted, limit=limit, before=before))
    nothing = "no jobs here" if found.moved else "no jobs here: `windlass enqueue` makes one"
    if in_words(wanted):
        nothing = "no job matches"
    print_jobs(found, limit=limit, as_json=as_json, nothing=nothing)


@jobs.command()
@click.argument("job_id", metavar="ID")
@click.option("--follow", "following", is_flag=True, help="Show new log lines and progress until the job ends.")
@click.option("--traceback", is_flag=True, help="Show the tracebacks of failed attempts.")
@store_options
@output_options
def show(*, job_id: str, following: bool, traceback: bool, app: str | None, url: str | None, as_json: bool) -> None:
    """Show everything of one job: times, payload, attempts, errors, log, result.

    ID may be the beginning of an id, of 8 characters or more, if it is the only one that begins so. Values under names
    that sound secret are hidden, and what a handler marks with `Secret`: of a job that its handler has enqueued, and
    with --app of every job of its kind.

    With --follow it ends with 0 when the job has succeeded, and with 1 when it is dead or cancelled.
    """
    code = asyncio.run(_show(Choice(app, url), job_id, following=following, traceback=traceback, as_json=as_json))
    raise click.exceptions.Exit(code)


async def _show(choice: Choice, text: str, *, following: bool, traceback: bool, as_json: bool) -> ExitCode:
    async with looked_at(choice) as (client, app, _):
        wanted = await found_id(client, text)
        job = await client.get(wanted)
        if job is None:
            raise JobNotFound(wanted)
        secrets = _secrets(app, job)
        if not as_json:
            _print(job, client.clock.now(), secrets, traceback=traceback)
        if not following or job.state.finished:
            last: Job | None = job
        else:
            last = await follow(client, job, quiet=as_json)
        if as_json and last is not None:
            print_json(document(last, secrets, whole=True))
        return _ended(last, wanted, told=not as_json and last is not job) if following else ExitCode.DONE


def _ended(job: Job | None, wanted: JobId, *, told: bool) -> ExitCode:
    if job is None:
        note(f"note: job {wanted} has ended or was deleted, and its record was not kept")
        return ExitCode.NOT_FOUND
    if told:
        why = f": {job.last_error}" if job.last_error and job.state is not State.SUCCEEDED else ""
        say(f"{job.state}{why}", STRONG)
    return ExitCode.DONE if job.state is State.SUCCEEDED else ExitCode.FAILED


def _secrets(app: App | None, job: Job) -> Sequence[str]:
    if app is None or job.kind is None:
        return ()
    try:
        return app.handler(job.kind).secret_fields
    except UnknownKind:
        return ()


def _print(job: Job, now: datetime, secrets: Sequence[str], *, traceback: bool) -> None:
    print_fields(fields(job, now, secrets))
    if job.history and room() < WIDE:
        say("")
        rows = [narrow_history_row(each, now) for each in job.history]
        print_table(NARROW_HISTORY_HEADS, rows, folds=["OUTCOME", "ERROR"])
    elif job.history:
        say("")
        lines = [history_row(each, now) for each in job.history]
        print_table(HISTORY_HEADS, lines, folds=["OUTCOME", "WORKER", "ERROR"])
    kept = [each for each in job.history if each.failure is not None and each.failure.traceback]
    if kept and not traceback:
        note(f"{len(kept)} traceback{'s' * (len(kept) > 1)} kept: see with --traceback")
    for each in kept if traceback else ():
        assert each.failure is not None  # noqa: S101 - such are chosen above
        say("")
        say(f"delivery {each.delivery}:", STRONG)
        print_text(each.failure.traceback or "", indent="  ", style=BAD)
    if job.log:
        say("")
        if len(job.log) > _LOG_SHOWN:
            say(f"... {len(job.log) - _LOG_SHOWN:,} lines before", FAINT)
        for line in job.log[-_LOG_SHOWN:]:
            print_text(log_text(line))


@jobs.command()
@change_options
def retry(**given: Any) -> None:  # noqa: ANN401 - what `Asked` reads
    """Give dead and cancelled jobs a full new budget of attempts, pending now.

    By ids, or by a filter: then they are counted and asked for first, changed in chunks of 1,000, and Ctrl-C stops
    between two chunks. Jobs that come meanwhile are left.

    \b
        windlass jobs retry --state dead --kind send_welcome --since 1d --url sqlite:///jobs.db
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    change_jobs(read_asked(given), retrying())


@jobs.command("cancel")
@change_options
def cancel_(**given: Any) -> None:  # noqa: ANN401 - what `Asked` reads
    """End waiting jobs, and ask the handlers of running ones to stop.

    By ids, or by a filter, as `windlass jobs retry`.
    """
    change_jobs(read_asked(given), cancelling())


@jobs.command()
@change_options
def delete(**given: Any) -> None:  # noqa: ANN401 - what `Asked` reads
    """Delete finished jobs with their history and log.

    By ids, or by a filter, as `windlass jobs retry`. To get rid of waiting jobs, cancel them first.
    """
    change_jobs(read_asked(given), deleting())


@jobs.command("run-now")
@change_options
def run_now(**given: Any) -> None:  # noqa: ANN401 - what `Asked` reads
    """Let waiting jobs run now, and not at their time.

    By ids, or by a filter, as `windlass jobs retry`.
    """
    change_jobs(read_asked(given), rescheduling(None))


@jobs.command("reschedule")
@click.option("--at", callback=read_moment, metavar="TIME", help="Let them run then: 2026-01-31T09:00:00+01:00.")
@click.option(
    "--in", "delay", callback=read_duration, metavar="TIME", help="Let them run after this time: 30s, 5m, 2h."
)
@change_options
def reschedule_(*, at: datetime | None, delay: timedelta | None, **given: Any) -> None:  # noqa: ANN401 - what `Asked` reads
    """Let waiting jobs run at another time.

    By ids, or by a filter, as `windlass jobs retry`.
    """
    if (at is None) is (delay is None):
        message = "say when: --at or --in, one of both"
        raise click.UsageError(message)
    run_at = at if delay is None else later(SystemClock().now(), delay)
    change_jobs(read_asked(given), rescheduling(run_at))
