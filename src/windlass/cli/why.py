"""`windlass why`: tells why a job has not run, where it is, or how it ended."""

import asyncio
from typing import Any, Final

import click

from windlass.cli.options import output_options, store_options
from windlass.cli.output import BAD, FAINT, GOOD, POOR, STRONG, Cell, print_json, print_paragraph, say
from windlass.cli.reach import Choice, dead_after, reached, settings_of
from windlass.client.job_ids import found_id
from windlass.client.why import Reason, Why
from windlass.core.job import Job
from windlass.exit_codes import ExitCode

_STYLES: Final = {
    "succeeded": GOOD,
    "running": GOOD,
    "pending": POOR,
    "scheduled": POOR,
    "dead": BAD,
    "cancelled": FAINT,
}


@click.command()
@click.argument("job_id", metavar="ID")
@store_options
@output_options
def why(*, job_id: str, app: str | None, url: str | None, as_json: bool) -> None:
    """Tell why a job has not run, where it is, or how it ended.

    The reasons come in order, the most decisive first, each with what to do. ID may be the beginning of an id, of 8
    characters or more, if it is the only one that begins so. Ends with 4 when there is no such job.
    """
    told = asyncio.run(_look(Choice(app, url), job_id))
    if as_json:
        print_json(document(told))
    else:
        _print(told)
    if told.job is None:
        raise click.exceptions.Exit(ExitCode.NOT_FOUND)


async def _look(choice: Choice, text: str) -> Why:
    async with reached(choice) as found:
        gone = dead_after(settings_of(choice, found))
        return await found.client.why(await found_id(found.client, text), dead_after=gone)


def document(told: Why) -> dict[str, Any]:
    """Return an answer as programs read it."""
    job = told.job
    return {
        "id": told.id,
        "now": told.now,
        "found": job is not None,
        "state": None if job is None else job.state,
        "queue": None if job is None else job.queue,
        "kind": None if job is None else job.kind,
        "reasons": [reason._asdict() for reason in told.reasons],
    }


def _print(told: Why) -> None:
    if told.job is not None:
        say(_title(told.job), STRONG)
    for number, reason in enumerate(told.reasons, 1):
        _print_reason(reason, number, told.job)


def _title(job: Job) -> str:
    return f"job {job.id}: {job.state}, {job.kind or 'raw'} in {job.queue}"


def _print_reason(reason: Reason, number: int, job: Job | None) -> None:
    style = STRONG if number == 1 else ""
    if number == 1 and job is not None:
        style = _STYLES[job.state]
    print_paragraph([Cell(f"{number}.", style)], [3], reason.message)
    if reason.advice is not None:
        print_paragraph([Cell("")], [3], f"-> {reason.advice}")
