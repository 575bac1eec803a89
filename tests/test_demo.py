import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from examples.demo import ledger, summary
from examples.demo.checker import Difference, Kind, Report, check
from examples.demo.ledger import Event, Follower, Ledger, Tally, TornLine, What
from examples.demo.second_reader import Contents, Rescue, Row

ROOT = Path(__file__).resolve().parent.parent

# Three jobs as they should go: `a` is settled at once; the first worker is killed with `b`, and the second one is
# paused with `c`; the third does both again, and the second comes too late.
EVENTS = [
    Event(What.CLAIMED, "w1", "a", 1),
    Event(What.STARTED, "w1", "a", 1),
    Event(What.EFFECT, "w1", "a", 1),
    Event(What.ACCEPTED, "w1", "a", 1),
    Event(What.CLAIMED, "w1", "b", 1),
    Event(What.STARTED, "w1", "b", 1),
    Event(What.KILLED, "w1"),
    Event(What.CLAIMED, "w2", "c", 1),
    Event(What.STARTED, "w2", "c", 1),
    Event(What.PAUSED, "w2"),
    Event(What.CLAIMED, "w3", "b", 2),
    Event(What.STARTED, "w3", "b", 2),
    Event(What.EFFECT, "w3", "b", 2),
    Event(What.ACCEPTED, "w3", "b", 2),
    Event(What.CLAIMED, "w3", "c", 2),
    Event(What.STARTED, "w3", "c", 2),
    Event(What.RESUMED, "w2"),
    Event(What.EFFECT, "w2", "c", 1),
    Event(What.REFUSED, "w2", "c", 1),
    Event(What.EFFECT, "w3", "c", 2),
    Event(What.ACCEPTED, "w3", "c", 2),
]
JOBS = {"a": Row("succeeded", 1), "b": Row("succeeded", 2), "c": Row("succeeded", 2)}
RESCUES = [Rescue("b", 1, "w1"), Rescue("c", 1, "w2")]


def checked(
    *, events: Sequence[Event] = EVENTS, jobs: dict[str, Row] = JOBS, rescues: Sequence[Rescue] = RESCUES
) -> Report:
    return check(["a", "b", "c"], events, Contents(jobs, list(rescues)))


def kinds(report: Report) -> list[tuple[Kind, str]]:
    return [(difference.kind, difference.job) for difference in report.differences]


def without(*gone: Event) -> list[Event]:
    return [event for event in EVENTS if event not in gone]


def test_a_good_run_has_no_difference_and_every_rerun_has_its_cause() -> None:
    report = checked()

    assert report == Report(
        enqueued=3,
        succeeded=3,
        reruns={"b": What.KILLED, "c": What.PAUSED},
        kills=1,
        pauses=1,
        rescued=2,
        refused=1,
        unread=0,
        differences=[],
    )
    assert report.void is None
    assert summary.conclusion(report, None)[0] == summary.HELD


@pytest.mark.parametrize("state", ["pending", "running", "dead"])
def test_a_job_that_did_not_succeed_is_lost(state: str) -> None:
    report = checked(jobs=JOBS | {"a": Row(state, 1)})

    assert (Kind.LOST, "a") in kinds(report)


def test_a_job_that_is_gone_from_the_store_is_lost() -> None:
    report = checked(jobs={job: row for job, row in JOBS.items() if job != "a"})

    assert (Kind.LOST, "a") in kinds(report)


def test_an_accepted_ack_that_the_store_does_not_know_is_found() -> None:
    report = checked(jobs=JOBS | {"a": Row("running", 1)})

    assert (Kind.FORGOTTEN, "a") in kinds(report)


def test_a_success_that_nobody_settled_is_found() -> None:
    report = checked(events=without(Event(What.ACCEPTED, "w1", "a", 1)))

    assert kinds(report) == [(Kind.NOBODYS, "a")]


def test_a_success_without_its_work_is_found() -> None:
    report = checked(events=without(Event(What.EFFECT, "w1", "a", 1)))

    assert kinds(report) == [(Kind.NO_EFFECT, "a")]


def test_a_job_with_two_accepted_acks_is_found_and_so_is_the_stale_claim() -> None:
    events = [
        Event(What.ACCEPTED, "w2", "c", 1) if event == Event(What.REFUSED, "w2", "c", 1) else event for event in EVENTS
    ]

    report = checked(events=events)

    assert kinds(report) == [(Kind.TWICE, "c"), (Kind.STALE, "c")]


@pytest.mark.parametrize("cause, job", [(Event(What.KILLED, "w1"), "b"), (Event(What.PAUSED, "w2"), "c")])
def test_a_rerun_without_a_kill_or_a_pause_is_found(cause: Event, job: str) -> None:
    report = checked(events=without(cause))

    assert kinds(report) == [(Kind.NO_CAUSE, job)]
    assert report.reruns[job] is None


def test_a_pause_before_the_claim_explains_nothing() -> None:
    pause = Event(What.PAUSED, "w2")

    report = checked(events=[pause, *without(pause)])

    assert kinds(report) == [(Kind.NO_CAUSE, "c")]


def test_a_pause_after_the_next_claim_explains_nothing() -> None:
    pause = Event(What.PAUSED, "w2")

    report = checked(events=[*without(pause), pause])

    assert kinds(report) == [(Kind.NO_CAUSE, "c")]


def test_a_rerun_without_a_rescue_is_found() -> None:
    report = checked(rescues=RESCUES[1:])

    assert kinds(report) == [(Kind.NO_CAUSE, "b")]


def test_one_claim_that_is_started_twice_is_found() -> None:
    report = checked(events=[*EVENTS, Event(What.STARTED, "w1", "a", 1)])

    assert kinds(report) == [(Kind.NO_CAUSE, "a")]


def test_a_job_that_nobody_enqueued_is_found_in_the_store_and_in_the_ledger() -> None:
    report = checked(events=[*EVENTS, Event(What.CLAIMED, "w3", "x", 1)], jobs=JOBS | {"y": Row("pending", 0)})

    assert kinds(report) == [(Kind.STRANGER, "y"), (Kind.STRANGER, "x")]


def test_a_worker_may_be_killed_before_it_reads_that_its_ack_was_accepted() -> None:
    events = [
        Event(What.CLAIMED, "w1", "a", 1),
        Event(What.STARTED, "w1", "a", 1),
        Event(What.EFFECT, "w1", "a", 1),
        Event(What.KILLED, "w1"),
    ]

    report = check(["a"], events, Contents({"a": Row("succeeded", 1)}, []))

    assert (report.differences, report.unread, report.kills) == ([], 1, 1)


def test_a_worker_may_be_killed_before_it_writes_that_it_has_claimed() -> None:
    report = checked(events=without(Event(What.CLAIMED, "w1", "b", 1), Event(What.STARTED, "w1", "b", 1)))

    assert report.differences == []


def test_a_run_without_a_kill_that_hit_somebody_is_void() -> None:
    idle = check([], [Event(What.KILLED, "w1")], Contents({}, []))

    assert idle.void == "no worker was killed while it held claims"
    assert summary.conclusion(idle, None)[0] == summary.VOID


def test_a_run_without_a_refusal_is_void() -> None:
    report = checked(events=without(Event(What.REFUSED, "w2", "c", 1)))

    assert report.void == "no stale settlement was refused"
    assert summary.conclusion(report, None)[0] == summary.VOID


def test_a_broken_run_without_a_difference_is_void() -> None:
    code, text = summary.conclusion(checked(), "fence")

    assert code == summary.VOID
    assert "fence" in text


def test_a_difference_is_named_with_its_job_and_outranks_a_void_run() -> None:
    report = replace(checked(), refused=0, differences=[Difference(Kind.LOST, "a", "is dead in the store")])

    code, text = summary.conclusion(report, None)

    assert code == summary.BROKEN
    assert "lost: 1\n    job a is dead in the store" in text


def test_a_ledger_is_read_as_it_was_written_and_followed_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    pen = Ledger(path)
    follower = Follower(path)

    pen.write(EVENTS[0])
    first = follower.news()
    pen.write(EVENTS[1])
    second = follower.news()
    pen.close()

    assert (first, second) == ([EVENTS[0]], [EVENTS[1]])
    assert ledger.read(path) == EVENTS[:2]


def test_a_torn_line_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(b'{"what":"clai')

    with pytest.raises(TornLine, match="no event"):
        ledger.read(path)


def test_a_tally_knows_what_a_worker_holds() -> None:
    tally = Tally()

    tally.add(EVENTS[:6])

    assert tally.held("w1") == {"b"}
    assert tally.done["w1"] == 1
    assert tally.runs["b"] == ["w1"]


def demo(tmp_path: Path, **environment: str) -> "subprocess.Popen[str]":
    """Start the real thing, small."""
    command = [sys.executable, "-m", "examples.demo", "--jobs", "80"]
    everything = os.environ | {"TERM": "dumb", "TMPDIR": str(tmp_path)} | environment
    return subprocess.Popen(
        command, cwd=ROOT, env=everything, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_the_demo_loses_nothing(tmp_path: Path) -> None:
    run = demo(tmp_path, BREAK="")
    told, _ = run.communicate(timeout=60)

    assert run.returncode == 0, told
    assert "Nothing lost, nothing settled twice" in told
    assert list(tmp_path.iterdir()) == []


def test_the_demo_without_the_fence_finds_a_double_settlement(tmp_path: Path) -> None:
    run = demo(tmp_path, BREAK="fence")
    told, _ = run.communicate(timeout=60)

    assert run.returncode == 1, told
    assert "settled twice: " in told


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_demo_leaves_nothing_behind(tmp_path: Path, stop: signal.Signals) -> None:
    run = demo(tmp_path, BREAK="")
    assert run.stdout is not None
    for line in run.stdout:
        if "is killed" in line:
            break
    run.send_signal(stop)
    told, _ = run.communicate(timeout=60)

    assert run.returncode == 130, told
    assert "Stopped." in told
    assert list(tmp_path.iterdir()) == []


def test_a_safeguard_that_is_not_known_is_refused(tmp_path: Path) -> None:
    run = demo(tmp_path, BREAK="glass")
    told, _ = run.communicate(timeout=60)

    assert run.returncode == 2
    assert "BREAK=glass is not known" in told
