"""The campaigns of `proofs`, in small: what they find must hold, and each must have met its fault."""

from pathlib import Path

from proofs.kills import failpoints, producer_kills, stale
from proofs.load import checkpoints, processes
from proofs.report import Report, Verdict
from windlass.core import failpoint


def assert_holds(report: Report) -> None:
    assert report.verdict is Verdict.HOLDS, report.text()


def test_every_job_is_settled_once_by_many_processes_and_none_of_them_starves(tmp_path: Path) -> None:
    plan = processes.Plan(jobs=3_000, producers=3, consumers=3, seconds=60)

    assert_holds(processes.prove(tmp_path, plan))


def test_nothing_acknowledged_is_lost_when_producers_are_killed(tmp_path: Path) -> None:
    plan = producer_kills.Plan(acknowledged=600, kills=6)

    assert_holds(producer_kills.prove(tmp_path, plan))


def test_stale_settlements_change_nothing(tmp_path: Path) -> None:
    assert_holds(stale.prove(tmp_path, stale.Plan(stale=100)))


def test_without_the_fence_stale_settlements_are_found(tmp_path: Path) -> None:
    failpoint.remove("fence")
    try:
        report = stale.prove(tmp_path, stale.Plan(stale=10))
    finally:
        failpoint.restore()

    assert report.verdict is Verdict.BROKEN
    assert "stale acks among valid ones accepted" in report.violations


def test_a_kill_at_any_failpoint_loses_nothing(tmp_path: Path) -> None:
    assert_holds(failpoints.prove(tmp_path, failpoints.Plan(first=3, most=1)))


def test_checkpoints_and_strangers_do_not_harm_the_file(tmp_path: Path) -> None:
    plan = checkpoints.Plan(seconds=4, writers=4, check_every=1)

    assert_holds(checkpoints.prove(tmp_path, plan))
