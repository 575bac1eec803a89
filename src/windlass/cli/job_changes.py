"""Changing jobs from the command line: by their ids, or all that match, counted and asked for first."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

from windlass.cli.asking import ask
from windlass.cli.audited import write_down, write_down_jobs
from windlass.cli.job_filter import in_words
from windlass.cli.output import note, print_json, say
from windlass.cli.progress import progress_bar
from windlass.cli.reach import Choice, looked_at, reached
from windlass.cli.stop_asked import stop_asked
from windlass.client.client import Client
from windlass.client.job_ids import found_id
from windlass.client.operations import CHUNK, DELETE, RETRY, Operation, cancel, chunks, reschedule
from windlass.config.masked import HIDDEN
from windlass.core.errors import InvalidValue, JobNotFound, UniqueConflict, WindlassError, WrongState
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.requests import CancelOutcome, Changed
from windlass.exit_codes import ExitCode, exit_code_of

LOOKED_AT: Final = 20_000
"""Records that one step of a count looks at."""

Failed: TypeAlias = list[tuple[str, WindlassError]]
"""What could not be changed, and why."""


class Way(NamedTuple):
    """How a change is made: where, in whose name, asked for or not, told to people or to programs."""

    choice: Choice
    actor: str
    yes: bool
    dry_run: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One change as it is told: `verb` asks for it, `done` tells of it."""

    verb: str
    done: str
    make: Callable[[Client], Operation]
    detail: Mapping[str, str] = field(default_factory=dict[str, str])
    outcomes: Counter[CancelOutcome] = field(default_factory=Counter[CancelOutcome])
    """What a cancel did: how many of the jobs run, and are asked to stop."""


def retrying() -> Change:
    """Return the change that gives jobs a new budget."""
    return Change("Retry", "pending again", lambda _: RETRY)


def deleting() -> Change:
    """Return the change that deletes finished jobs."""
    return Change("Delete", "deleted", lambda _: DELETE)


def rescheduling(run_at: datetime | None) -> Change:
    """Return the change that lets waiting jobs run then, or now."""
    when = "now" if run_at is None else run_at.isoformat()
    verb, done = ("Run now", "to run now") if run_at is None else ("Reschedule", f"to run at {when}")
    return Change(verb, done, lambda _: reschedule(run_at), {"run_at": when})


def cancelling() -> Change:
    """Return the change that ends waiting jobs, and asks running ones to stop."""
    outcomes: Counter[CancelOutcome] = Counter()

    def tell(_: JobId, outcome: CancelOutcome) -> None:
        outcomes[outcome] += 1

    return Change("Cancel", "cancelled", lambda client: cancel(client.settings.retention, tell), outcomes=outcomes)


def change_by_ids(ids: Sequence[str], change: Change, way: Way) -> ExitCode:
    """Change each of these jobs, also when one cannot be; return the code of the first that could not."""
    done, failed = asyncio.run(_changed_by_ids(ids, change, way))
    for _, error in failed:
        note(f"error: {error}")
    if way.as_json:
        print_json({"done": done, "failed": [{"id": name, "error": str(error)} for name, error in failed]})
    else:
        for job_id in done:
            say(f"{job_id}: {change.done}")
        _tell_requested(change)
    return exit_code_of(failed[0][1]) if failed else ExitCode.DONE


async def _changed_by_ids(ids: Sequence[str], change: Change, way: Way) -> tuple[list[JobId], Failed]:
    async with reached(way.choice, changes=True) as (client, _):
        operation = change.make(client)
        wanted, failed = await _known(client, ids)
        done: list[JobId] = []
        try:
            for at in range(0, len(wanted), CHUNK):
                chunk = wanted[at : at + CHUNK]
                answers = await operation.change(client.store, chunk)
                for job_id, answer in zip(chunk, answers, strict=True):
                    if answer is Changed.DONE:
                        done.append(job_id)
                    else:
                        failed.append((job_id, await _reason(client, operation, job_id, answer)))
        finally:
            await write_down_jobs(client, way.actor, operation.name, done, change.detail)
        return done, failed


async def _known(client: Client, ids: Sequence[str]) -> tuple[list[JobId], Failed]:
    wanted: list[JobId] = []
    failed: Failed = []
    for name in dict.fromkeys(ids):
        try:
            wanted.append(await found_id(client, name))
        except JobNotFound as error:
            failed.append((name, error))
    return list(dict.fromkeys(wanted)), failed


async def _reason(client: Client, operation: Operation, job_id: JobId, answer: Changed) -> WindlassError:
    [job] = await client.store.get((job_id,))
    if job is None:
        return JobNotFound(job_id)
    if answer is Changed.KEY_HELD:
        return UniqueConflict(job.unique_key or "", None)
    return WrongState(job_id, job.state, operation.needed)


def change_by_filter(chosen: JobFilter, change: Change, way: Way) -> ExitCode:
    """Change every job that matches: counted first, asked for, in chunks that Ctrl-C stops between."""
    matched, last = asyncio.run(_counted(chosen, change, way))
    if way.dry_run or not matched:
        _tell(change, matched, Counter(), as_json=way.as_json, dry_run=way.dry_run)
        return ExitCode.DONE
    # between two visits: nobody holds a store while a person thinks
    ask(f"{change.verb} {_jobs(matched)}{_described(chosen)}?", yes=way.yes, first="--dry-run")
    return asyncio.run(_changed(chosen, change, way, matched, last))


async def _counted(chosen: JobFilter, change: Change, way: Way) -> tuple[int, int | None]:
    async with looked_at(way.choice) as found:
        client = found.client
        operation = change.make(client)
        if chosen.state not in (None, *operation.states):
            message = f"no job that is {chosen.state} can be meant: this needs one that is {operation.needed}"
            raise InvalidValue(message)
        return await _count(client, operation, chosen)


async def _changed(chosen: JobFilter, change: Change, way: Way, matched: int, last: int | None) -> ExitCode:
    async with reached(way.choice, changes=True) as (client, _):
        work = _Work(client, change.make(client), chosen)
        try:
            await work.run(change.verb, matched, last)
        finally:
            await work.write_down(way.actor, change.detail)
            _tell(change, matched, work.answers, as_json=way.as_json, stopped=work.stopped)
        return ExitCode.INTERRUPTED if work.stopped else ExitCode.DONE


class _Work:
    """A change of many jobs that is under way."""

    def __init__(self, client: Client, operation: Operation, chosen: JobFilter) -> None:
        self.answers: Counter[Changed] = Counter()
        self.stopped = True
        self._client = client
        self._operation = operation
        self._chosen = chosen

    async def run(self, verb: str, matched: int, last: int | None) -> None:
        with stop_asked() as stop, progress_bar(verb, matched) as advance:
            async for chunk in chunks(self._client.store, self._operation, self._chosen, last=last):
                self.answers += chunk
                advance(chunk.total())
                if stop.is_set() and self.answers.total() < matched:
                    return
        self.stopped = False

    async def write_down(self, actor: str, detail: Mapping[str, str]) -> None:
        count = self.answers[Changed.DONE]
        told = {"count": str(count), **in_words(self._chosen), **detail}
        if self._chosen.payload_text is not None:
            # whoever reads the audit need not be one who reads payloads
            told["payload_text"] = HIDDEN
        if self.stopped:
            told["interrupted"] = "yes"
        await write_down(self._client, actor, self._operation.name, _jobs(count), told)


async def _count(client: Client, operation: Operation, chosen: JobFilter) -> tuple[int, int | None]:
    """Return how many jobs match and can be changed, and the last sequence number there is: later ones are left."""
    newest = await client.store.newest(JobFilter(), before=None, limit=1, most=1)
    last = newest.jobs[0].seq if newest.jobs else None
    states = [state for state in operation.states if chosen.state in (None, state)]
    if set(in_words(chosen)) <= {"queue", "state"}:
        rows = await client.store.stats(chosen.queue)
        return sum(getattr(row, state.value) for row in rows for state in states), last
    count = 0
    with progress_bar("counting", None) as advance:
        for state in states:
            before: int | None = None
            while True:
                page = await client.store.newest(
                    replace(chosen, state=state), before=before, limit=CHUNK, most=LOOKED_AT
                )
                count += len(page.jobs)
                advance(len(page.jobs))
                before = page.next
                if before is None:
                    break
    return count, last


def _tell(
    change: Change,
    matched: int,
    answers: Counter[Changed],
    *,
    as_json: bool,
    dry_run: bool = False,
    stopped: bool = False,
) -> None:
    count, held = answers[Changed.DONE], answers[Changed.KEY_HELD]
    if as_json:
        told: dict[str, Any] = {
            "action": change.verb.lower().replace(" ", "_"),
            "matched": matched,
            "changed": count,
            "asked_to_stop": change.outcomes[CancelOutcome.REQUESTED],
            "key_held": held,
            "dry_run": dry_run,
            "interrupted": stopped,
        }
        print_json(told)
        return
    if dry_run or not matched:
        say(f"{_jobs(matched)} would be {change.done}" if matched else "no job matches")
        return
    say(f"{_jobs(count)} {change.done}" + (f" of {matched:,}: the rest is as it was" if stopped else ""))
    _tell_requested(change)
    if held:
        note(f"note: {_jobs(held)} left out: another live job holds their unique key")
    elif not stopped and count < matched:
        note(f"note: {_jobs(matched - count)} had moved on meanwhile")


def _tell_requested(change: Change) -> None:
    if running := change.outcomes[CancelOutcome.REQUESTED]:
        note(f"note: {_jobs(running)} of them running: asked to stop, which is up to the handler")


def _jobs(count: int) -> str:
    return f"{count:,} job{'s' * (count != 1)}"


def _described(chosen: JobFilter) -> str:
    words = in_words(chosen)
    return f" ({', '.join(f'{name} {text}' for name, text in words.items())})" if words else ""
