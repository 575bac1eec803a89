"""`windlass enqueue`: put a job in line, and wait for it if asked to."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import click

from windlass.cli.job_words import Words, check_words, job_options, new_job
from windlass.cli.moment import read_moment
from windlass.cli.options import output_options, read_duration, store_options
from windlass.cli.output import note, print_json, say
from windlass.cli.reach import Choice, reached
from windlass.client.claims import DEAD_AFTER
from windlass.client.client import Client
from windlass.client.results import Completed, NotFound
from windlass.client.server_details import is_live, is_stopping
from windlass.core.errors import DecodeError
from windlass.core.job import Enqueued, Job
from windlass.core.looks import SERVES
from windlass.core.states import State
from windlass.exit_codes import ExitCode


@click.command()
@job_options
@click.option("--delay", callback=read_duration, metavar="TIME", help="Let it run after this time: 30s, 5m, 2h, 7d.")
@click.option("--at", callback=read_moment, metavar="TIME", help="Let it run then: 2026-01-31T09:00:00+01:00.")
@click.option("--unique", metavar="KEY", help="Enqueue nothing while a job with this key waits in the queue.")
@click.option("--id", "job_id", metavar="UUID", help="The job's id: repeated with it, it is one job.")
@click.option("--wait", callback=read_duration, metavar="TIME", help="Wait so long for its end, and print the result.")
@store_options
@output_options
def enqueue(
    *,
    app: str | None,
    url: str | None,
    delay: timedelta | None,
    at: datetime | None,
    unique: str | None,
    job_id: str | None,
    wait: timedelta | None,
    as_json: bool,
    **described: Any,  # noqa: ANN401 - the fields of `Words`
) -> None:
    """Put a job in line.

    KIND is a handler of the app, and its arguments are given as NAME=VALUE. A value is read as JSON where it is some,
    and else as text. They are checked against the signature of the handler before anything is written.

    \b
        windlass enqueue send_welcome user_id=42 locale=sv --app tasks:app
        windlass enqueue --queue email --payload hello

    Prints the id of the job.
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    words = Words(**described)
    check_words(words)
    if delay is not None and at is not None:
        message = "give --delay or --at, not both"
        raise click.UsageError(message)
    fields = {"delay": delay, "run_at": at, "unique": unique, "id": job_id}
    code = asyncio.run(_enqueue(words, Choice(app, url), fields, wait, as_json=as_json))
    raise click.exceptions.Exit(code)


async def _enqueue(
    words: Words, choice: Choice, fields: dict[str, Any], wait: timedelta | None, *, as_json: bool
) -> ExitCode:
    async with reached(choice, create=True, app_needed=words.by_app) as (client, app):
        wanted = new_job(words, app, **fields)
        [done] = await client.enqueue_many([wanted])
        if not as_json:
            say(done.id)
            if not done.created:
                note("note: a job with this id or unique key was there already")
        told: dict[str, Any] = {"id": done.id, "created": done.created, "queue": wanted.queue, "kind": wanted.kind}
        code = ExitCode.DONE if wait is None else await _wait(client, done, wait, told, as_json=as_json)
        if as_json:
            print_json(told)
        return code


async def _wait(client: Client, done: Enqueued, wait: timedelta, told: dict[str, Any], *, as_json: bool) -> ExitCode:
    try:
        found = await client.wait(done.id, wait)
    except asyncio.CancelledError:
        note(f"note: job {done.id} stays in line: see windlass jobs show {done.id}")
        raise
    match found:
        case Completed(None):
            # its record went with its end, and with it how that was
            told.update(state=None, result=None, error="its record was not kept")
            note(f"note: job {done.id} has ended, and its record was not kept: set keep_succeeded to see results")
            return ExitCode.DONE
        case Completed(Job(state=State.SUCCEEDED) as job):
            told.update(state=job.state, result=_result(client, job), error=None)
            if not as_json:
                print_json(told["result"])
            return ExitCode.DONE
        case Completed(Job() as job):
            told.update(state=job.state, result=None, error=job.last_error)
            note(f"error: job {done.id} is {job.state}{f': {job.last_error}' if job.last_error else ''}")
            return ExitCode.FAILED
        case NotFound():
            told.update(state=None, result=None, error="its record is gone")
            note(f"error: job {done.id} is gone: its record was pruned")
            return ExitCode.FAILED
        case _:
            unfinished = await client.get(done.id)
            state = None if unfinished is None else unfinished.state
            told.update(state=state, result=None, error="it had not ended in time")
            why = "it may end later" if await _any_server(client) else "no server is alive, start `windlass worker`"
            note(f"error: job {done.id} had not ended after {wait.total_seconds():g} s: {why}")
            return ExitCode.FAILED


async def _any_server(client: Client) -> bool:
    now, servers = client.clock.now(), await client.store.servers()
    # one that serves the store over HTTP does no jobs
    workers = [server for server in servers if SERVES not in server.details and not is_stopping(server)]
    return any(is_live(server, now, DEAD_AFTER) for server in workers)


def _result(client: Client, job: Job) -> Any:  # noqa: ANN401 - the JSON edge
    try:
        found = client.decode_result(job)
    except DecodeError:
        found = job.result
    return found.decode(errors="backslashreplace") if isinstance(found, bytes) else found
