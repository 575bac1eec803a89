import pytest

from tests.demo.given import ENDED, EVENTS, JOBS, TICK, TOO_LATE, checked, kinds, run_of, without
from windlass.demo.checker import Plan, Report, Rescues, check
from windlass.demo.difference import Kind
from windlass.demo.ledger import Event, What
from windlass.demo.second_reader import Contents, Ended, Row


def test_a_good_run_has_no_difference_and_everything_is_counted() -> None:
    report = checked()

    assert report == Report(
        jobs=7,
        succeeded=6,
        dead=1,
        waiting=0,
        ticks=1,
        retried=1,
        kills=1,
        poisoned=3,
        pauses=1,
        rescues={What.KILLED: Rescues(1, 0.5), What.PAUSED: Rescues(1, 2.0), What.POISONED: Rescues(3, 0.25)},
        refused=1,
        unread=0,
        differences=[],
    )
    assert report.void is None


@pytest.mark.parametrize("state", ["pending", "scheduled", "running", "cancelled"])
def test_a_job_that_did_not_end_well_is_lost(state: str) -> None:
    report = checked(jobs=JOBS | {"a": Row(state, 1)})

    assert (Kind.LOST, "a") in kinds(report)


def test_a_job_that_is_gone_from_the_store_is_lost() -> None:
    report = checked(jobs={job: row for job, row in JOBS.items() if job != "a"})

    assert (Kind.LOST, "a") in kinds(report)


@pytest.mark.parametrize("state", ["pending", "scheduled", "running"])
def test_a_job_that_waits_when_the_run_was_stopped_is_not_lost(state: str) -> None:
    report = checked(enqueued="abcmpz", jobs=JOBS | {"z": Row(state, 0)}, stopped=True)

    assert report.differences == []
    assert report.waiting == 1


def test_a_stopped_run_still_knows_what_is_lost() -> None:
    report = checked(enqueued="abcmpz", stopped=True)

    assert kinds(report) == [(Kind.LOST, "z")]


def test_a_dead_job_that_is_not_the_poison_is_found() -> None:
    ended = [*ENDED, Ended("m", 2, "w1", "failed", 1001.5, 1002.0)]
    events = [*without(*run_of("w1", "m", 2)), *run_of("w1", "m", 2)[:1], Event(What.RAISED, "w1", "m", 2)]

    report = checked(jobs=JOBS | {"m": Row("dead", 2)}, events=events, ended=ended)

    assert kinds(report) == [(Kind.DEAD, "m")]


def test_a_poison_that_harmed_nobody_is_found() -> None:
    jobs = JOBS | {"p": Row("succeeded", 1)}
    events = [event for event in EVENTS if event.job != "p"] + run_of("w3", "p")

    report = checked(jobs=jobs, events=events, ended=[ended for ended in ENDED if ended.job != "p"])

    assert kinds(report) == [(Kind.UNHARMED, "p")]
    assert report.void == "the poison has killed nobody"


def test_a_poison_that_is_not_dead_yet_is_lost() -> None:
    report = checked(jobs=JOBS | {"p": Row("pending", 3)})

    assert kinds(report) == [(Kind.LOST, "p")]


def test_an_accepted_success_that_the_store_does_not_know_is_found() -> None:
    report = checked(jobs=JOBS | {"a": Row("running", 1)})

    assert (Kind.FORGOTTEN, "a") in kinds(report)


def test_a_success_that_nobody_settled_is_found() -> None:
    report = checked(events=without(Event(What.ACCEPTED, "w3", "f", 1)))

    assert kinds(report) == [(Kind.NOBODYS, "f")]


def test_a_success_without_its_work_is_found() -> None:
    report = checked(events=without(Event(What.EFFECT, "w1", "a", 1)))

    assert kinds(report) == [(Kind.NO_EFFECT, "a")]


def test_a_job_with_two_accepted_successes_is_found_and_so_is_the_stale_claim() -> None:
    report = checked(events=[*EVENTS, Event(What.ACCEPTED, "w2", "c", 1)])

    assert kinds(report) == [(Kind.TWICE, "c"), (Kind.STALE, "c")]
    assert report.refused == 0


@pytest.mark.parametrize("what, job", [(What.KILLED, "b"), (What.PAUSED, "c")])
def test_a_rescue_without_a_kill_or_a_pause_is_found(what: What, job: str) -> None:
    report = checked(events=[event for event in EVENTS if event.what is not what])

    assert kinds(report) == [(Kind.NO_CAUSE, job)]
    assert report.rescues[None].jobs == 1


@pytest.mark.parametrize("paused_at", [1012.0, 1016.5])
def test_a_pause_before_the_claim_or_after_its_end_explains_nothing(paused_at: float) -> None:
    pause = Event(What.PAUSED, "w2", at=1014.0)

    report = checked(events=[*without(pause), Event(What.PAUSED, "w2", at=paused_at)])

    assert kinds(report) == [(Kind.NO_CAUSE, "c")]


def test_a_delivery_whose_end_the_store_does_not_know_is_found() -> None:
    report = checked(ended=[ended for ended in ENDED if ended.job != "b"])

    assert kinds(report) == [(Kind.NO_CAUSE, "b")]


def test_a_retry_of_a_job_that_did_not_raise_is_found() -> None:
    report = checked(events=without(Event(What.RAISED, "w1", "m", 1)))

    assert kinds(report) == [(Kind.NO_CAUSE, "m")]


def test_a_failed_attempt_without_a_retry_is_found() -> None:
    report = checked(events=[*EVENTS, Event(What.RAISED, "w1", "a", 1)])

    assert kinds(report) == [(Kind.NOT_RETRIED, "a")]


def test_a_job_may_be_given_back_before_it_has_begun() -> None:
    jobs, ended = JOBS | {"a": Row("succeeded", 2)}, [*ENDED, Ended("a", 1, "w2", "released", 1000.5, 1001.0)]
    events = [*without(*run_of("w1", "a")), *run_of("w3", "a", 2)]

    report = checked(jobs=jobs, ended=ended, events=events)

    assert report.differences == []


def test_a_job_that_is_given_back_in_the_middle_of_its_work_is_found() -> None:
    jobs, ended = JOBS | {"a": Row("succeeded", 2)}, [*ENDED, Ended("a", 1, "w1", "released", 1000.5, 1001.0)]

    report = checked(jobs=jobs, ended=ended, events=[*EVENTS, *run_of("w3", "a", 2)])

    assert (Kind.NO_CAUSE, "a") in kinds(report)


def test_one_claim_that_is_started_twice_is_found() -> None:
    report = checked(events=[*EVENTS, Event(What.STARTED, "w1", "a", 1)])

    assert kinds(report) == [(Kind.NO_CAUSE, "a")]


def test_a_job_that_nobody_enqueued_is_found_in_the_store_and_in_the_ledger() -> None:
    jobs = JOBS | {"y": Row("dead", 0)}

    report = checked(events=[*EVENTS, Event(What.STARTED, "w3", "x", 1)], jobs=jobs, poison="py")

    assert kinds(report) == [(Kind.STRANGER, "y"), (Kind.STRANGER, "x")]


@pytest.mark.parametrize("followers", [0, 2])
def test_a_job_of_the_schedule_that_enqueued_none_or_two_is_found(followers: int) -> None:
    jobs = {job: row for job, row in JOBS.items() if job != "f"}
    jobs |= {f"f{number}": Row("succeeded", 1, parent="d") for number in range(followers)}
    events = [event for event in EVENTS if event.job != "f"]
    events += [event for number in range(followers) for event in run_of("w3", f"f{number}")]

    report = checked(jobs=jobs, events=events)

    assert kinds(report) == [(Kind.FOLLOWERS, "d")]


def test_two_jobs_for_one_tick_are_found() -> None:
    jobs = JOBS | {
        "e": Row("succeeded", 1, schedule="digest", due_at=TICK),
        "g": Row("succeeded", 1, parent="e"),
    }

    report = checked(jobs=jobs, events=[*EVENTS, *run_of("w3", "e"), *run_of("w3", "g")])

    assert kinds(report) == [(Kind.TICK_TWICE, "00:16:50")]


def test_a_tick_without_a_job_is_found() -> None:
    jobs = {job: row for job, row in JOBS.items() if job not in ("d", "f")}

    report = checked(jobs=jobs, events=[event for event in EVENTS if event.job not in ("d", "f")])

    assert kinds(report) == [(Kind.TICK_MISSING, "00:16:50")]


def test_a_server_may_be_killed_before_it_reads_that_a_success_was_accepted() -> None:
    events = [*run_of("w1", "a")[:-1], Event(What.KILLED, "w1")]

    report = check(Plan("a"), events, Contents({"a": Row("succeeded", 1)}, []))

    assert (report.differences, report.unread) == ([], 1)


def test_a_server_may_be_killed_before_it_begins_what_it_has_claimed() -> None:
    report = checked(events=without(Event(What.STARTED, "w1", "b", 1)))

    assert report.differences == []


def test_a_run_without_a_kill_that_hit_somebody_is_void() -> None:
    idle = check(Plan([]), [Event(What.KILLED, "w1")], Contents({}, []))

    assert idle.void == "no process was killed while it held jobs"


def test_a_run_without_a_refusal_is_void() -> None:
    report = checked(events=without(TOO_LATE))

    assert report.void == "no stale settlement was refused"


def test_an_end_before_the_rescue_is_no_refusal() -> None:
    in_time = Event(What.RETURNED, "w2", "c", 1, at=1015.0)

    report = checked(events=[in_time if event is TOO_LATE else event for event in EVENTS])

    assert report.refused == 0
