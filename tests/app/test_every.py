import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module, reload
from pathlib import Path
from typing import Annotated, Any

import pytest

import windlass
from windlass import (
    PRIORITY_HIGH,
    App,
    Context,
    EncodeError,
    InvalidName,
    InvalidValue,
    Job,
    PayloadTooLarge,
    QueueSettings,
    Schedule,
    Secret,
    ServerConfig,
)
from windlass.app.handler import AsyncHandler
from windlass.client.schedules import put_schedule
from windlass.engine.served import Around
from windlass.schedule.declared import Declared
from windlass.schedule.scheduler import Scheduler
from windlass.system import TaskSpawn
from windlass.testing import FakeClock

NOW = datetime(2026, 3, 2, 10, 30, tzinfo=UTC)
SCHEDULED = """
import windlass

app = windlass.App("memory://")
"""
LOADS_NO_CRON = """
import asyncio, sys
import windlass

app = windlass.App("memory://")

@app.job
async def send() -> None: ...

async def main():
    async with app:
        await send.enqueue()
        await app.client.enqueue("email")
    app.close_sync()

asyncio.run(main())
loaded = {"zoneinfo", "windlass.zone", "windlass.core.rule", "windlass.schedule"} & set(sys.modules)
sys.exit(f"loaded {loaded}" if loaded else 0)
"""


@dataclass
class Ledger:
    """What a lifespan could yield, and a caller could give."""

    path: str


@pytest.fixture
def app() -> App:
    return App("memory://", clock=FakeClock(NOW))


def declared(app: App, id: str) -> Declared:
    inside: Any = app
    found: Declared = inside._declarations.declared[id]
    return found


async def written(app: App, id: str) -> Schedule:
    """What a server writes when it starts."""
    async with app:
        asked_for = declared(app, id).wanted(app.client.preparer)
        return await put_schedule(app.client.store, asked_for, declared=True)


async def test_a_handler_is_left_as_it_is(app: App) -> None:
    @app.job
    async def report(day: int = 1) -> int:
        return day

    decorated = app.every("@daily")(report)

    assert decorated is report
    assert isinstance(report, AsyncHandler)
    assert await report(3) == 3
    assert app.schedules == ("report",)


async def test_a_declared_schedule_makes_jobs_of_its_handler(app: App) -> None:
    @app.every("30 2 * * *", timezone="Europe/Berlin", args={"day": 3}, catch_up="all", overlap="skip")
    @app.job(queue="reports", priority=PRIORITY_HIGH, max_attempts=2)
    async def report(day: int) -> None: ...

    schedule = await written(app, "report")

    assert schedule == Schedule(
        id="report",
        rule="30 2 * * *",
        timezone="Europe/Berlin",
        queue="reports",
        kind="report",
        payload=b'{"day":3}',
        codec="json",
        priority=PRIORITY_HIGH,
        max_attempts=2,
        catch_up="all",
        overlap="skip",
        declared=True,
        next_run_at=datetime(2026, 3, 3, 1, 30, tzinfo=UTC),
        revision=schedule.revision,
    )


async def test_a_declared_schedule_tells_what_is_secret_in_its_jobs(app: App) -> None:
    @app.every("@daily", args={"pin": "hush"})
    @app.job
    async def pay(pin: Annotated[str, Secret]) -> None: ...

    assert (await written(app, "pay")).headers == {"windlass-secret": "pin"}


@pytest.mark.parametrize("rule", [timedelta(minutes=5), 300])
async def test_an_interval_is_a_rule_too(app: App, rule: timedelta | float) -> None:
    @app.every(rule)
    @app.job
    def poll() -> None: ...

    assert (await written(app, "poll")).rule == "every 300s"


async def test_priority_and_attempts_are_those_of_the_settings_at_the_start() -> None:
    app = App("memory://", max_attempts=7, queues={"reports": QueueSettings(priority=5)})

    @app.every("@daily")
    @app.job(queue="reports")
    def report() -> None: ...

    app.queue("reports", priority=6)

    schedule = await written(app, "report")
    assert (schedule.priority, schedule.max_attempts) == (6, 7)


async def test_a_declared_schedule_belongs_to_no_tenant() -> None:
    def nobody_is_logged_in() -> str:
        raise LookupError

    app = App("memory://", tenant=nobody_is_logged_in)

    @app.every("@daily")
    @app.job
    def report() -> None: ...

    assert (await written(app, "report")).tenant is None


async def test_several_may_stand_above_one_handler(app: App) -> None:
    @app.every("0 8 * * *", id="morning", args={"part": "am"})
    @app.every("0 20 * * *", id="evening", args={"part": "pm"})
    @app.job
    def report(part: str) -> None: ...

    assert sorted(app.schedules) == ["evening", "morning"]
    assert (await written(app, "morning")).payload == b'{"part":"am"}'


def test_the_id_is_the_kind_also_a_given_one(app: App) -> None:
    @app.every("@daily")
    @app.job(kind="daily-report")
    def report() -> None: ...

    assert app.schedules == ("daily-report",)


def test_an_app_without_schedules_declares_none(app: App) -> None:
    assert app.schedules == ()


def test_the_same_id_above_another_handler_is_refused_with_both(app: App) -> None:
    @app.every("@daily")
    @app.job
    def report() -> None: ...

    with pytest.raises(InvalidValue, match=r"'report' is declared above .*\.report, and above .*\.other too: give one"):

        @app.every("@hourly", id="report")
        @app.job
        def other() -> None: ...

    assert declared(app, "report").terms.rule.text == "@daily"


def test_the_same_id_twice_above_one_handler_is_refused(app: App) -> None:
    with pytest.raises(InvalidValue, match=r"'report' is declared twice above .*\.report: give one of them an id= of"):

        @app.every("0 8 * * *")
        @app.every("0 20 * * *")
        @app.job
        def report() -> None: ...


def test_a_module_that_is_loaded_again_declares_its_own_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "scheduled_app.py").write_text(SCHEDULED)
    page = tmp_path / "scheduled_jobs.py"
    page.write_text("from scheduled_app import app\n@app.every(60)\n@app.every(90, id='b')\n@app.job\ndef a(): ...\n")
    jobs = import_module("scheduled_jobs")
    page.write_text("from scheduled_app import app\n@app.every(30)\n@app.job\ndef a() -> None:\n    pass\n")

    reload(jobs)

    assert jobs.app.schedules == ("a",)
    assert declared(jobs.app, "a").terms.rule.text == "every 30s"
    page.write_text("from scheduled_app import app\n\n\n@app.job\ndef a() -> None:\n    pass  # no more\n")
    reload(jobs)
    assert jobs.app.schedules == ()


def test_below_the_job_it_is_refused(app: App) -> None:
    every: Any = app.every("@daily")

    def report() -> None: ...

    with pytest.raises(InvalidValue, match=r"@app\.every stands above @app\.job, .* and not above report\(\) itself"):
        app.job(every(report))

    assert app.handlers == {}


@pytest.mark.parametrize("below", [print, 5, None, App])
def test_above_anything_else_it_is_refused(app: App, below: Any) -> None:  # noqa: ANN401
    every: Any = app.every("@daily")

    with pytest.raises(InvalidValue, match=r"stands above @app\.job"):
        every(below)


def test_above_a_consumer_it_is_refused(app: App) -> None:
    @app.consumer("raw")
    def consume(job: Job) -> None: ...

    every: Any = app.every("@daily")
    with pytest.raises(InvalidValue, match=r"stands above @app\.job"):
        every(consume)


def test_above_a_handler_of_another_app_it_is_refused(app: App) -> None:
    @App("memory://").job
    def report() -> None: ...

    with pytest.raises(InvalidValue, match="'report' is of another app"):
        app.every("@daily")(report)


def test_without_a_rule_it_is_refused(app: App) -> None:
    with pytest.raises(InvalidValue, match="takes a rule"):

        @app.every  # type: ignore[arg-type]
        @app.job
        def report() -> None: ...


@pytest.mark.parametrize(
    "given",
    [
        {"rule": "* * *"},
        {"rule": "0 0 30 2 *"},
        {"rule": None},
        {"rule": 0},
        {"timezone": "Europe/Berln"},
        {"timezone": None},
        {"catch_up": "two"},
        {"overlap": "maybe"},
        {"args": 5},
        {"args": None},
        {"args": [("day", 1)]},
    ],
    ids=str,
)
def test_what_cannot_mean_anything_is_refused_before_it_stands_above_anything(app: App, given: Any) -> None:  # noqa: ANN401
    arguments: dict[str, Any] = {"rule": "@daily", **given}

    with pytest.raises(InvalidValue):
        app.every(**arguments)


@pytest.mark.parametrize("id", ["", "a b", "x" * 201, 5])
def test_an_id_that_is_no_name_is_refused(app: App, id: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidName, match="schedule id"):

        @app.every("@daily", id=id)
        @app.job
        def report() -> None: ...

    assert app.schedules == ()


@pytest.mark.parametrize(
    "args, message",
    [
        ({}, "schedule 'report' cannot call its handler, report() missing a required argument: 'day'"),
        ({"day": 1, "dya": 2}, "report() has no argument 'dya': did you mean 'day'?"),
        ({"day": "one"}, "report(): day: Expected int, got str"),
        ({1: 2}, "keywords must be strings"),
        ({"day": 1, "ctx": 2}, "report() has no argument 'ctx'"),
    ],
)
def test_arguments_that_the_handler_does_not_take_are_refused(app: App, args: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidValue) as raised:

        @app.every("@daily", args=args)
        @app.job
        def report(ctx: Context, day: int, *, locale: str = "en") -> None: ...

    assert message in str(raised.value)
    assert app.schedules == ()


def test_an_argument_that_json_cannot_say_is_refused(app: App) -> None:
    with pytest.raises(EncodeError, match="value: cannot be written as JSON"):

        @app.every("@daily", args={"value": object()})
        @app.job
        def report(value: Any) -> None: ...  # noqa: ANN401


async def test_arguments_are_those_of_the_declaration_whatever_becomes_of_the_mapping(app: App) -> None:
    args = {"day": 1}

    @app.every("@daily", args=args)
    @app.job
    def report(day: int) -> None: ...

    args["day"] = 2

    assert (await written(app, "report")).payload == b'{"day":1}'


async def test_what_is_defined_further_below_is_looked_at_when_a_server_starts(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(day: int) -> None: ...

    report.__annotations__["day"] = "DefinedLater"
    app.every("@daily", id="good", args={"day": 3})(app.job(report))
    app.every("@daily", id="bad", args={"day": "x"})(app.job(kind="again")(report))

    monkeypatch.setitem(globals(), "DefinedLater", int)

    assert (await written(app, "good")).payload == b'{"day":3}'
    with pytest.raises(InvalidValue, match="day: Expected int"):
        await written(app, "bad")


async def test_what_a_lifespan_further_below_provides_is_not_missing(app: App) -> None:
    @app.every("@daily", args={"day": 3})
    @app.job
    def report(day: int, ledger: Ledger) -> None: ...

    @app.every("@daily")
    @app.job
    def count(marked: Annotated[Ledger, "mine"] = windlass.given()) -> None: ...

    @app.lifespan
    async def ledger() -> AsyncIterator[Ledger]:
        yield Ledger("here")

    assert (await written(app, "report")).payload == b'{"day":3}'
    assert (await written(app, "count")).payload == b"{}"


async def test_what_no_lifespan_provides_in_the_end_is_missing_when_a_server_starts(app: App) -> None:
    @app.every("@daily")
    @app.job
    def report(ledger: Ledger) -> None: ...

    with pytest.raises(InvalidValue, match="missing a required argument: 'ledger'"):
        await written(app, "report")


async def test_arguments_over_the_limit_are_refused_when_a_server_starts() -> None:
    app = App("memory://", max_payload=10)

    @app.every("@daily", args={"text": "x" * 100})
    @app.job
    def report(text: str) -> None: ...

    with pytest.raises(PayloadTooLarge):
        await written(app, "report")


def around(app: App, config: ServerConfig) -> Around:
    client = app.client
    return Around(config, client.clock, client.rng, TaskSpawn(), client, "a#1")


async def test_a_server_runs_a_scheduler_unless_it_is_to_leave_schedules_alone(app: App) -> None:
    async with app:
        on, off = (app.services(around(app, ServerConfig(schedules=each))) for each in (True, False))

    assert [type(service) for service in on] == [Scheduler]
    assert list(off) == []


def test_an_app_without_schedules_loads_nothing_of_them() -> None:
    done = subprocess.run([sys.executable, "-c", LOADS_NO_CRON], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_plain_run_of_an_eager_app_makes_no_job_by_itself() -> None:
    app = App("memory://", eager=True)

    @app.every(1)
    @app.job
    def report() -> str:
        return "done"

    assert report.enqueue_sync().result() == "done"
    assert len(list(app.blocking_client.jobs())) == 1
    app.close_sync()
