import logging
from datetime import timedelta

import pytest

from tests.engine.given import attempt_of, claims
from windlass.client.client import Client
from windlass.core.job import Failure
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.engine.attempt import Attempt
from windlass.engine.job_log import SUCCESSES, JobLog
from windlass.testing import FakeClock


@pytest.fixture
def log(clock: FakeClock) -> JobLog:
    return JobLog(clock)


@pytest.fixture
async def attempt(client: Client) -> Attempt:
    [claim] = await claims(client, 1)
    return attempt_of(client, claim)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "windlass.jobs"]


@pytest.mark.parametrize(
    "decided, level_and_text",
    [
        (ToSucceeded(), ("INFO", "succeeded")),
        (
            ToRetry(timedelta(seconds=1.25), Failure("no", "OSError")),
            ("WARNING", "failed, again in 1.2 s: OSError: no"),
        ),
        (ToDead(Failure("no")), ("ERROR", "failed, the job is dead: no")),
        (ToCancelled("asked to"), ("INFO", "was cancelled: asked to")),
        (ToSnoozed(timedelta(minutes=1)), ("INFO", "is put off by 60.0 s")),
        (ToReleased(), ("INFO", "is given back")),
    ],
)
async def test_every_end_has_a_line_with_its_facts(
    attempt: Attempt, log: JobLog, caplog: pytest.LogCaptureFixture, decided: Verdict, level_and_text: tuple[str, str]
) -> None:
    level, said = level_and_text
    caplog.set_level(logging.INFO, "windlass.jobs")

    log.end(attempt, decided)
    log.close()

    [(shown, line)] = told(caplog)
    assert (shown, line.endswith(f"attempt 1 of 3 {said}")) == (level, True)


async def test_a_traceback_is_followed_by_no_empty_line(
    attempt: Attempt, log: JobLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.end(attempt, ToDead(Failure("no", "OSError", "Traceback:\n  raise OSError\nOSError: no\n")))

    [(_, line)] = told(caplog)
    assert line.endswith("the job is dead: OSError: no\nTraceback:\n  raise OSError\nOSError: no")


async def test_many_successes_in_a_second_are_told_by_their_number(
    attempt: Attempt, log: JobLog, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass.jobs")
    for _ in range(SUCCESSES + 1_234):
        log.end(attempt, ToSucceeded())

    clock.advance(1)
    log.end(attempt, ToSucceeded())
    log.close()

    lines = told(caplog)
    assert len(lines) == SUCCESSES + 2
    assert lines[SUCCESSES] == ("INFO", "1,234 more jobs succeeded within a second")
    assert lines[-1][1].endswith("succeeded")


async def test_failures_are_told_however_many_there_are(
    attempt: Attempt, log: JobLog, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(SUCCESSES + 50):
        log.end(attempt, ToDead(Failure("no")))
    log.close()

    assert len(told(caplog)) == SUCCESSES + 50


async def test_what_was_not_told_yet_is_told_at_the_close(
    attempt: Attempt, log: JobLog, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass.jobs")
    for _ in range(SUCCESSES + 2):
        log.end(attempt, ToSucceeded())

    log.close()

    assert told(caplog)[-1] == ("INFO", "2 more jobs succeeded within a second")
