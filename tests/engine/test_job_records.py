"""Log records about jobs from servers, child processes and eager mode, as a handler of the standard log gets them."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import windlass
from tests.engine.given import an_attempt, settlements_of
from tests.engine.hostile import app as child_app
from tests.engine.hostile import exit_handler, leave_handler
from windlass.client.client import Client
from windlass.core.job import Failure, Job
from windlass.core.requests import RescueRequest
from windlass.core.states import State
from windlass.core.verdict import Raised
from windlass.engine.attempt_stopper import AttemptStopper
from windlass.engine.hooks import Hooks
from windlass.engine.rescuer import Rescuer
from windlass.engine.settlement_writer import StateChange
from windlass.system import TaskSpawn
from windlass.testing import FakeClock

WITHIN = 20


class Records(logging.Handler):
    """Keeps what it is given, as the handler of an error tracker does."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.all.append(record)

    def of_jobs(self) -> list[Any]:
        return [record for record in self.all if record.name == "windlass.jobs"]

    def saying(self, part: str) -> Any:  # noqa: ANN401 - a record with attributes that its class does not declare
        [record] = [record for record in self.all if part in record.msg]
        return record


@pytest.fixture
def records() -> Iterator[Records]:
    handler = Records()
    logger = logging.getLogger("windlass")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(handler)


class NoFundsError(Exception): ...


@pytest.mark.parametrize("eager", [False, True])
async def test_the_exception_of_a_handler_is_with_the_record(records: Records, *, eager: bool) -> None:
    app = windlass.App("memory://", retry=windlass.NoRetry(), eager=eager)
    error = NoFundsError("3 EUR are missing")

    @app.job
    async def coroutine() -> None:
        raise error

    @app.job
    def thread() -> None:
        raise error

    async with app:
        handles = {"coroutine": await coroutine.enqueue(), "thread": await thread.enqueue()}
        if not eager:
            async with windlass.Server(app):
                for handle in handles.values():
                    await handle.wait(WITHIN)

    found = {record.job_id: record for record in records.of_jobs()}
    for kind, handle in handles.items():
        record = found[handle.id]
        assert record.exc_info[:2] == (NoFundsError, error)
        assert (record.kind, record.queue, record.attempt) == (kind, "default", 1)


async def test_arguments_that_do_not_fit_and_permanent_failures_have_their_exceptions(records: Records) -> None:
    app = windlass.App("memory://")

    @app.job
    async def add(number: int) -> int:
        return number

    @app.job
    async def refuse() -> None:
        message = "no such user"
        raise windlass.PermanentFailure(message)

    @app.job
    async def unstorable() -> object:
        return object()

    async with app, windlass.Server(app):
        await app.client.enqueue("default", {"number": "many"}, kind=add.kind)
        await refuse.enqueue()
        await unstorable.enqueue()
        for job in await app.client.jobs():
            await app.client.wait(job.id, WITHIN)

    kinds = {record.kind: record.exc_info[0] for record in records.of_jobs()}
    assert kinds == {
        add.kind: windlass.DecodeError,
        refuse.kind: windlass.PermanentFailure,
        unstorable.kind: windlass.EncodeError,
    }


async def test_what_ends_in_a_child_process_is_told_with_its_type_and_its_job(records: Records) -> None:
    async with child_app, windlass.Server(child_app):
        raised, died = await exit_handler.enqueue(), await leave_handler.enqueue()
        for handle in (raised, died):
            await handle.wait(WITHIN)
        kept = [(await handle.job()).history[0].failure for handle in (raised, died)]

    found = {record.job_id: record for record in records.of_jobs()}
    assert [None if each is None else each.module for each in kept] == ["builtins", None]
    kind = found[raised.id].exc_info[0]
    assert (kind.__name__, kind.__module__) == ("SystemExit", "builtins")
    assert "exit_politely" in found[raised.id].exc_text
    assert found[died.id].exc_info[0].__name__ == "ChildDied"


async def test_a_lost_claim_and_a_stuck_attempt_name_their_job(client: Client, records: Records) -> None:
    settlements = settlements_of(client)
    lost, stuck = await an_attempt(client), await an_attempt(client)
    await client.store.rescue(RescueRequest(force=True, limit=1), client.settings.retention)
    settlements.add(lost, Raised(Failure("no")))
    await settlements.drain()
    AttemptStopper(settlements, client.clock).give_back(stuck)
    await settlements.drain()

    assert records.saying("was taken back while it ran").job_id == lost.job.id
    assert records.saying("does not end with its server").job_id == stuck.job.id


async def test_a_hook_that_raises_names_the_job(client: Client, records: Records) -> None:
    attempt = await an_attempt(client)

    def fall(_job: Job) -> None:
        message = "no"
        raise ValueError(message)

    hooks = Hooks([], [fall], TaskSpawn())
    hooks.tell([StateChange(attempt.job, State.RUNNING, State.DEAD)])
    await hooks.drain()

    assert records.saying("a hook failed").job_id == attempt.job.id


@pytest.mark.parametrize(
    "attempts, expected",
    [(1, ("ERROR", "dead", "failed, the job is dead")), (2, ("INFO", "rescued", "is taken back"))],
)
async def test_a_rescued_job_has_a_record_of_its_own(
    client: Client, clock: FakeClock, records: Records, attempts: int, expected: tuple[str, str, str]
) -> None:
    level, outcome, said = expected
    attempt = await an_attempt(client, max_attempts=attempts)
    clock.advance(timedelta(minutes=5).total_seconds())

    rescuer = Rescuer(client.store, client.settings.retention, clock=clock, rng=client.rng, spawn=TaskSpawn())
    await rescuer.tick()

    record = records.saying(said)
    assert (record.levelname, record.outcome, record.job_id) == (level, outcome, attempt.job.id)
    assert (record.kind, record.attempt, record.delivery) == ("work", 1, 1)
