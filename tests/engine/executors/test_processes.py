import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from proofs.children import eventually
from tests.engine.executors import home
from tests.engine.executors.given import begin, run, run_program, value
from windlass.codec import JSON
from windlass.core.verdict import GivenBack, Raised, Returned
from windlass.engine.executors.processes import STARTING, Processes


async def test_many_attempts_share_a_few_children() -> None:
    pool = Processes(most=2)
    runs = [begin(pool, home.pid)[0] for _ in range(200)]

    ends = await asyncio.gather(*[started.ended for started in runs])

    pids = {end.outcome.result for end in ends if isinstance(end.outcome, Returned)}
    assert len(ends) == 200
    assert 1 <= len(pids) <= 2
    assert pool.busy == 0
    await pool.close()


async def test_no_more_interpreters_start_at_once_than_there_are_processors() -> None:
    pool = Processes(most=50)
    runs = [begin(pool, home.pid)[0] for _ in range(50)]

    at_once = pool.busy
    ends = await asyncio.gather(*[started.ended for started in runs])

    assert at_once == min(STARTING, 50)
    assert all(isinstance(end.outcome, Returned) for end in ends)
    await pool.close()


@pytest.mark.parametrize(
    "handler, arguments, said",
    [
        (home.leave, {"code": 3}, "ended with exit code 3"),
        (home.leave, {"code": 0}, "ended with exit code 0"),
        (home.crash, {}, "ended by SIGSEGV"),
        (home.report_and_die, {}, "ended by SIGKILL"),
    ],
)
async def test_the_death_of_a_child_is_a_failed_attempt_and_the_next_one_gets_another_child(
    processes: Processes, handler: home.Handled, arguments: dict[str, object], said: str
) -> None:
    end = await run(processes, handler, **arguments)

    assert isinstance(end.outcome, Raised)
    assert (end.outcome.failure.type, end.outcome.failure.message) == ("ChildDied", f"the child process {said}")
    assert end.died == said
    assert await value(processes, home.add, a=1, b=1) == 2


async def test_a_child_that_closed_its_link_is_of_no_use_any_more(processes: Processes) -> None:
    end = await run(processes, home.deafen)

    # whoever notices first ends it
    assert end.died in ("ended by SIGKILL", "ended with exit code 70")
    assert await value(processes, home.add, a=1, b=1) == 2


async def test_what_a_child_noted_before_its_death_arrives(processes: Processes) -> None:
    started, attempt = begin(processes, home.report_and_die)

    await started.ended

    assert attempt.lines == [("info", "about to die")]


@pytest.mark.parametrize("handler", [home.wait_until_stopped, home.wait_until_stopped_async])
@pytest.mark.parametrize("reason", ["cancel", "timeout", "claim_lost"])
async def test_a_handler_is_told_why_it_should_stop(processes: Processes, handler: home.Handled, reason: str) -> None:
    started, attempt = begin(processes, handler)
    await attempt.noted.wait()

    # from another thread, as renewals do
    await asyncio.to_thread(started.tell, reason)
    end = await started.ended

    assert end.outcome == Returned(JSON.encode(reason), "json")


async def test_sigterm_stops_by_the_reason_that_was_told(processes: Processes) -> None:
    started, attempt = begin(processes, home.wait_until_stopped)
    await attempt.noted.wait()

    started.tell("cancel")
    started.terminate()
    end = await started.ended

    assert end.outcome == Returned(b'"cancel"', "json")
    assert await value(processes, home.add, a=1, b=1) == 2


async def test_a_sigterm_from_outside_means_that_the_service_stops(processes: Processes) -> None:
    started, attempt = begin(processes, home.wait_until_stopped)
    await attempt.noted.wait()

    assert started.pid is not None
    os.kill(started.pid, signal.SIGINT)
    os.kill(started.pid, signal.SIGTERM)
    end = await started.ended

    assert end.outcome == Returned(b'"stop"', "json")


async def test_what_was_told_in_line_is_known_at_the_begin(processes: Processes) -> None:
    first, attempt = begin(processes, home.wait_until_stopped)
    second, _ = begin(processes, home.wait_until_stopped)
    await attempt.noted.wait()

    second.tell("cancel")
    first.tell("stop")
    ends = [await first.ended, await second.ended]

    assert [end.outcome for end in ends] == [Returned(b'"stop"', "json"), Returned(b'"cancel"', "json")]


async def test_a_loop_without_end_is_killed_and_its_place_is_taken(processes: Processes) -> None:
    pid = await value(processes, home.pid)
    started, _ = begin(processes, home.run_for_ever)
    next_one, _ = begin(processes, home.add, a=1, b=1)

    started.kill()
    end = await started.ended

    assert end.died == "ended by SIGKILL"
    assert (await next_one.ended).outcome == Returned(b"2", "json")
    assert await value(processes, home.pid) != pid


async def test_one_that_waits_in_line_is_given_back_when_it_is_killed(processes: Processes) -> None:
    begin(processes, home.run_for_ever)
    second, _ = begin(processes, home.add, a=1, b=1)

    second.kill()

    assert (await second.ended).outcome == GivenBack()
    assert second.pid is None


async def test_a_caller_who_was_cancelled_can_still_kill_the_child(processes: Processes) -> None:
    started, attempt = begin(processes, home.ignore_signals)
    await attempt.noted.wait()
    waiting = asyncio.ensure_future(started.ended)
    waiting.cancel()

    started.kill()

    assert await value(processes, home.add, a=1, b=1) == 2


async def test_a_close_ends_the_idle_the_busy_and_the_deaf_and_gives_back_the_rest() -> None:
    pool = Processes(most=3)
    polite, politely = begin(pool, home.wait_until_stopped)
    deaf, deafly = begin(pool, home.ignore_signals)
    await value(pool, home.add, a=1, b=1)
    third, thirdly = begin(pool, home.ignore_signals)
    waiting, _ = begin(pool, home.add, a=1, b=1)
    await asyncio.gather(politely.noted.wait(), deafly.noted.wait(), thirdly.noted.wait())

    await pool.close(grace=0.5)

    assert (await polite.ended).outcome == Returned(b'"stop"', "json")
    assert (await deaf.ended).died == (await third.ended).died == "ended by SIGKILL"
    assert (await waiting.ended).outcome == GivenBack()
    assert pool.busy == 0


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_child_that_nobody_needs_ends() -> None:
    pool = Processes(most=1, idle_for=0.0)
    pid = await value(pool, home.pid)

    assert await asyncio.to_thread(eventually, lambda: not lives(pid))
    assert await value(pool, home.pid) != pid
    await pool.close()


# A server that is killed while one of its children is busy and another one idle.
ORPHANS = """
import asyncio, json, os, signal, sys
from tests.engine.executors import home
from tests.engine.executors.given import Held, a_job, begin, value
from windlass.engine.executors.processes import STARTING, Processes

async def main():
    pool = Processes(most=2)
    busy, attempt = begin(pool, home.ignore_signals)
    await attempt.noted.wait()
    idle = await value(pool, home.pid)
    print(json.dumps([busy.pid, idle]), flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "as usual"])
def test_children_end_with_their_server(tmp_path: Path, how: str) -> None:
    # it returns when nobody holds the other end of stdout any more, as each child does while it lives
    ended = run_program(tmp_path, ORPHANS, how)

    assert ended.returncode == (-signal.SIGKILL if how == "killed" else 0), ended.stderr
    assert len(json.loads(ended.stdout)) == 2
