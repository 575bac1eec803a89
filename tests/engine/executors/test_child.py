import os
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

import windlass
from tests.engine.executors import broken, home
from tests.engine.executors.given import Held, a_job, begin, run, run_program, value
from windlass.codec import JSON
from windlass.core.job import NewJob, Progress
from windlass.core.states import State
from windlass.core.verdict import GaveUp, GivenBack, PutOff, Raised, Returned, Stopped
from windlass.engine.executors.processes import ChildEnd, Processes
from windlass.handlers.registered import Registered, RunsIn


async def test_a_function_and_a_coroutine_run_in_a_child_and_return(processes: Processes) -> None:
    results = [
        await value(processes, home.add, a=1, b=2),
        await value(processes, home.add_slowly, a=3, b=4),
        await value(processes, home.own_loop),
        await value(processes, home.measure, text="x" * 2**20),
        len(await value(processes, home.return_text, length=2**20 - 2)),
    ]

    assert results == [3, 7, 3, 2**20, 2**20 - 2]
    assert await value(processes, home.pid) != os.getpid()


async def test_a_success_without_a_value_has_no_result(processes: Processes) -> None:
    end = await run(processes, home.report)

    assert end == ChildEnd(Returned())


@pytest.mark.parametrize(
    "handler, kind, said",
    [
        (home.exit_politely, "SystemExit", "3"),
        (home.interrupt, "KeyboardInterrupt", ""),
        (home.fall_in_a_group, "ExceptionGroup", "unhandled errors in a TaskGroup (1 sub-exception)"),
        (home.fall_silently, "Unspeakable", "(its text cannot be shown: SystemExit)"),
    ],
)
async def test_whatever_a_handler_raises_is_the_end_of_an_attempt_and_not_of_the_child(
    processes: Processes, handler: home.Handled, kind: str, said: str
) -> None:
    before = await value(processes, home.pid)

    end = await run(processes, handler)

    assert isinstance(end.outcome, Raised)
    assert (end.outcome.failure.type, end.outcome.failure.message) == (kind, said)
    assert "home.py" in (end.outcome.failure.traceback or "")
    assert end.outcome.delay == timedelta(seconds=7)
    assert await value(processes, home.pid) == before


async def test_a_task_beside_the_handler_cannot_end_the_child(processes: Processes) -> None:
    assert await value(processes, home.exit_in_a_task) == "went on"


async def test_the_retry_rule_is_asked_where_the_exception_is(processes: Processes) -> None:
    by_queue = await run(processes, home.divide_by_zero)
    retried = await run(processes, home.fall, name="OSError")
    given_up = await run(processes, home.fall, name="ValueError")
    broken_rule = await run(processes, home.fall_with_a_bad_rule)

    assert isinstance(by_queue.outcome, GaveUp)
    assert by_queue.outcome.failure.summary == "ZeroDivisionError: division by zero"
    assert isinstance(retried.outcome, Raised)
    assert retried.outcome.delay == timedelta(seconds=100)
    assert isinstance(given_up.outcome, GaveUp)
    assert isinstance(broken_rule.outcome, Raised)
    assert broken_rule.outcome.failure.summary == "OSError: fell"


async def test_the_signals_of_a_handler_come_through(processes: Processes) -> None:
    ends = {name: await run(processes, home.signal_by, name=name) for name in ("snooze", "release", "cancel")}
    again = await run(processes, home.signal_by, name="retry")
    failed = await run(processes, home.signal_by, name="fail")

    assert {name: end.outcome for name, end in ends.items()} == {
        "snooze": PutOff(timedelta(seconds=6)),
        "release": GivenBack(started=True),
        "cancel": Stopped("enough"),
    }
    assert isinstance(again.outcome, Raised)
    assert (again.outcome.delay, again.outcome.failure.message) == (timedelta(seconds=5), "again")
    assert isinstance(failed.outcome, GaveUp)
    assert failed.outcome.failure.message == "never"


async def test_a_result_that_cannot_be_kept_makes_the_job_dead(processes: Processes) -> None:
    strange = await run(processes, home.return_an_object)
    large = await run(processes, home.return_text, length=2**20)

    assert isinstance(strange.outcome, GaveUp)
    assert "the work was done" in strange.outcome.failure.message
    assert isinstance(large.outcome, GaveUp)
    assert large.outcome.failure.type == "PayloadTooLarge"


async def test_arguments_that_do_not_decode_make_the_job_dead(processes: Processes) -> None:
    attempt = Held(a_job(b"{not json"))

    end = await processes.start(home.add.registered, attempt).ended

    assert isinstance(end.outcome, GaveUp)
    assert end.outcome.failure.type == "DecodeError"


async def test_a_module_that_cannot_be_imported_is_a_failed_attempt_with_its_traceback(processes: Processes) -> None:
    registered = Registered("work", "default", broken.work, RunsIn.PROCESS, home.Plain())

    end = await processes.start(registered, Held(a_job())).ended

    assert isinstance(end.outcome, Raised)
    assert end.outcome.failure.summary == "LookupError: this module is not for children"
    assert "broken.py" in (end.outcome.failure.traceback or "")
    assert await value(processes, home.add, a=1, b=1) == 2


async def test_a_function_that_the_child_does_not_know_as_a_handler_is_named(processes: Processes) -> None:
    registered = Registered("gone", "default", home.never_registered, RunsIn.PROCESS, home.Plain())

    end = await processes.start(registered, Held(a_job())).ended

    assert isinstance(end.outcome, Raised)
    assert "home.never_registered is a handler in the server and not in a child" in end.outcome.failure.message


async def test_a_handler_is_found_under_another_name_than_its_function(processes: Processes) -> None:
    assert await value(processes, home.another_name) == "found"


async def test_the_context_is_known_inside_and_the_main_thread_runs_it(processes: Processes) -> None:
    attempt = Held(a_job(attempt=2))

    end = await processes.start(home.about_me.registered, attempt).ended

    assert isinstance(end.outcome, Returned)
    assert JSON.decode(end.outcome.result or b"") == {
        "id": attempt.job.id,
        "attempt": 2,
        "token": "a token",
        "thread": "MainThread",
    }


async def test_notes_come_in_order_and_before_the_end(processes: Processes) -> None:
    started, attempt = begin(processes, home.report)

    await started.ended

    assert attempt.steps == [Progress(1, 3, "begun"), Progress(3, 3)]
    assert attempt.lines == [("info", "line one"), ("warning", "line \\ud800 two")]


async def test_the_standard_log_of_a_handler_comes_as_notes(processes: Processes) -> None:
    started, attempt = begin(processes, home.log_as_usual)

    await started.ended

    assert attempt.lines == [("warning", "theirs: as usual"), ("error", "theirs: at last")]


async def test_more_notes_than_the_link_holds_wait_for_the_server_and_not_the_job_for_them(
    processes: Processes,
) -> None:
    started, attempt = begin(processes, home.report_endlessly)

    end = await started.ended

    numbers = [int(text.split()[0]) for _, text in attempt.lines]
    assert end.outcome == Returned(b"20000", "json")
    assert numbers == sorted(numbers)
    assert len(numbers) > 1_000


async def test_a_lifespan_opens_once_in_a_child_and_closes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME_CLOSED", str(tmp_path / "closed"))
    pool = Processes(most=1)
    opened = [await value(pool, home.lifespans) for _ in range(3)]
    pid = await value(pool, home.pid)

    await pool.close(grace=10)

    assert opened == [1, 1, 1]
    assert (tmp_path / "closed").read_text() == f"{pid}\n"


async def test_what_no_lifespan_gives_is_a_failed_attempt(processes: Processes) -> None:
    end = await run(processes, home.want_too_much)

    assert isinstance(end.outcome, Raised)
    assert "no lifespan of the app provides one" in end.outcome.failure.message


@pytest.mark.parametrize("handler", [home.tenant, home.tenant_async])
async def test_a_tenant_has_its_scope_in_the_child(processes: Processes, handler: home.Handled) -> None:
    inside = await processes.start(handler.registered, Held(a_job(tenant="acme"))).ended
    outside = await processes.start(handler.registered, Held(a_job())).ended

    assert inside.outcome == Returned(b'"acme"', "json")
    assert outside.outcome == Returned()


async def test_the_scope_of_a_tenant_sees_what_the_handler_raises(processes: Processes) -> None:
    end = await processes.start(home.fall_within_a_tenant.registered, Held(a_job(tenant="acme"))).ended

    assert isinstance(end.outcome, Raised)
    assert end.outcome.failure.summary == "LookupError: within acme"


async def test_what_follows_a_success_comes_with_it_prepared(processes: Processes) -> None:
    end = await run(processes, home.follow)
    wrong = await run(processes, home.follow_wrongly)

    [job] = end.next_jobs or []
    assert (job.queue, job.kind, job.payload, job.parent_id) == ("next", "add", b'{"a":1}', a_job().id)
    assert end.kv_writes == {b"k": b"v"}
    assert isinstance(wrong.outcome, Raised)
    assert wrong.outcome.failure.type == "InvalidName"


async def test_a_store_in_memory_is_out_of_reach_and_says_so(processes: Processes) -> None:
    end = await run(processes, home.keep)

    assert isinstance(end.outcome, Raised)
    assert "a child process cannot reach it" in end.outcome.failure.message


async def test_a_child_writes_and_settles_through_a_client_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    monkeypatch.setenv("HOME_URL", url)
    pool = Processes(most=1)
    async with windlass.connect(url) as client:
        await client.enqueue_many([NewJob("default"), NewJob("default")])
        one, two = await client.claim_many("default", limit=2)

        kept = await value(pool, home.keep)
        settled = await pool.start(home.settle.registered, Held(one.job, one.token)).ended
        fell = await pool.start(home.settle_and_fall.registered, Held(two.job, two.token)).ended

        ends = [await client.get(claim.job.id) for claim in (one, two)]
        assert kept == str(await client.kv.get("kept"))
        assert [job.state for job in ends if job is not None] == [State.SUCCEEDED, State.SUCCEEDED]
    await pool.close(grace=10)
    assert (settled.settled, settled.outcome) == (True, Returned())
    assert fell.settled
    with sqlite3.connect(tmp_path / "jobs.db") as connection:
        assert connection.execute("select what from effects").fetchall() == [("done",)]
    connection.close()


# Handlers in the program itself, which a child imports before anything else.
PROGRAM = """
import asyncio, sys
from tests.engine.executors import home
from tests.engine.executors.given import Held, a_job, begin
from windlass.engine.executors.processes import Processes

@home.job()
def mine() -> str:
    return __name__

async def main():
    pool = Processes(most=1)
    run, _ = begin(pool, mine)
    print(await run.ended)
    await pool.close()

if __name__ == "__main__":
    asyncio.run(main())
elif sys.argv[1] == "fails":
    sys.exit(5)
"""


def test_a_handler_may_stand_in_the_program_itself(tmp_path: Path) -> None:
    ended = run_program(tmp_path, PROGRAM, "works")

    assert ended.returncode == 0, ended.stderr
    assert '"__mp_main__"' in ended.stdout


def test_a_program_that_a_child_cannot_import_is_a_failed_attempt(tmp_path: Path) -> None:
    ended = run_program(tmp_path, PROGRAM, "fails")

    assert ended.returncode == 0, ended.stderr
    assert "the child process ended with exit code 5 before it was ready" in ended.stdout
