import json
import logging
from datetime import timedelta
from typing import Any

import pytest

from tests.engine.given import attempt_of, claims
from windlass.client.client import Client
from windlass.client.failure import failure_of
from windlass.core.job import Failure
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.engine.attempt import Attempt
from windlass.engine.job_log import SUCCESSES, JobLog
from windlass.parent.log_format import HumanFormatter, JsonFormatter
from windlass.testing import FakeClock

FAILED = "job %s (%s) attempt %d of %d failed"


def raised(error: Exception) -> Exception:
    try:
        throw(error)
    except Exception as caught:  # noqa: BLE001 - it is given back
        return caught
    return error


def throw(error: Exception) -> None:
    raise error


@pytest.fixture
def log(clock: FakeClock) -> JobLog:
    return JobLog(clock)


@pytest.fixture
async def attempt(client: Client) -> Attempt:
    [claim] = await claims(client, 1)
    return attempt_of(client, claim)


def of_jobs(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [each for each in caplog.records if each.name == "windlass.jobs"]


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(each.levelname, each.getMessage()) for each in of_jobs(caplog)]


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

    [record] = of_jobs(caplog)
    line = logging.Formatter().format(record)
    assert line.endswith("the job is dead: OSError: no\nTraceback:\n  raise OSError\nOSError: no")


@pytest.mark.parametrize(
    "decided, template",
    [
        (ToSucceeded(), "job %s (%s) attempt %d of %d succeeded"),
        (ToRetry(timedelta(seconds=1), Failure("no", "OSError")), f"{FAILED}, again in %s: %s"),
        (ToDead(Failure("no")), f"{FAILED}, the job is dead: %s"),
        (ToCancelled("asked to"), "job %s (%s) attempt %d of %d was cancelled: %s"),
        (ToSnoozed(timedelta(minutes=1)), "job %s (%s) attempt %d of %d is put off by %s"),
        (ToReleased(), "job %s (%s) attempt %d of %d is given back"),
    ],
)
async def test_a_record_has_a_constant_template_and_the_job_in_attributes(
    attempt: Attempt, log: JobLog, caplog: pytest.LogCaptureFixture, decided: Verdict, template: str
) -> None:
    caplog.set_level(logging.INFO, "windlass.jobs")

    log.end(attempt, decided)
    log.close()

    [record] = of_jobs(caplog)
    assert record.msg == template
    assert record.args[:2] == (attempt.job.id, "work")
    assert record.job_id == attempt.job.id
    assert (record.kind, record.queue, record.attempt, record.delivery) == ("work", "default", 1, 1)
    assert (record.worker, record.tenant) == ("a test", None)
    assert record.windlass["outcome"] == record.outcome


@pytest.mark.parametrize("give_up", [False, True])
async def test_a_failed_attempt_carries_the_exception_that_was_raised(
    attempt: Attempt, log: JobLog, caplog: pytest.LogCaptureFixture, *, give_up: bool
) -> None:
    error = raised(ValueError("no such address"))
    failure = failure_of(error)

    log.end(attempt, ToDead(failure) if give_up else ToRetry(timedelta(seconds=1), failure), error)

    [record] = of_jobs(caplog)
    assert record.exc_info == (ValueError, error, error.__traceback__)
    assert logging.Formatter().format(record).count("ValueError: no such address") == 2  # the message, the traceback


async def test_an_exception_of_another_process_is_built_from_its_text(
    attempt: Attempt, log: JobLog, caplog: pytest.LogCaptureFixture
) -> None:
    trace = "Traceback (most recent call last):\n  in the child\nNoFunds: no"
    log.end(attempt, ToDead(Failure("no", "NoFunds", trace)))
    log.end(attempt, ToDead(Failure("later", "NoFunds", trace)))

    first, second = of_jobs(caplog)
    kind, error, _ = first.exc_info
    assert (kind.__name__, str(error), kind is second.exc_info[0]) == ("NoFunds", "no", True)
    assert logging.Formatter().format(first).endswith(f"NoFunds: no\n{trace}")


async def test_a_reason_in_words_is_no_exception(
    attempt: Attempt, log: JobLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.end(attempt, ToDead(Failure("no")))

    [record] = of_jobs(caplog)
    assert record.exc_info is None


async def test_a_retry_has_one_line_at_the_terminal_and_a_traceback_in_json(
    attempt: Attempt, log: JobLog, caplog: pytest.LogCaptureFixture
) -> None:
    error = raised(ValueError("no"))
    log.end(attempt, ToRetry(timedelta(seconds=1), failure_of(error)), error)

    [record] = of_jobs(caplog)
    in_json = json.loads(JsonFormatter(dict).format(record))
    assert HumanFormatter(coloured=False).format(record).count("\n") == 0
    assert in_json["exception"].endswith("ValueError: no")
    assert in_json["message"].endswith("again in 1.0 s: ValueError: no")


async def test_a_dead_job_has_its_traceback_once_in_both_forms_of_the_log(
    attempt: Attempt, log: JobLog, caplog: pytest.LogCaptureFixture
) -> None:
    error = raised(ValueError("no"))
    log.end(attempt, ToDead(failure_of(error)), error)
    log.end(attempt, ToDead(Failure("the child process was killed", "ChildDied")))

    record, died = of_jobs(caplog)
    human = HumanFormatter(coloured=False)
    assert human.format(record).count("Traceback (most recent") == 1
    assert human.format(record).endswith("    ValueError: no")
    assert json.loads(JsonFormatter(dict).format(record))["message"].endswith("the job is dead: ValueError: no")
    assert human.format(died).endswith("the job is dead: ChildDied: the child process was killed")
    assert human.format(died).count("ChildDied") == 1


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
