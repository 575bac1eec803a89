"""The campaigns against `windlass worker`, in small; see `test_campaigns`."""

from pathlib import Path

from proofs.kills import child_kills, signals
from proofs.report import Report, Verdict


def assert_holds(report: Report) -> None:
    assert report.verdict is Verdict.HOLDS, report.text()


def test_a_signal_costs_no_attempt_and_ends_the_worker_in_time(tmp_path: Path) -> None:
    """With time to spare: the machine of a test is busy."""
    plan = signals.Plan(stops=4, jobs=1_500, early=4, processes=2, long=3, spare=5)

    assert_holds(signals.prove(tmp_path, plan))


def test_a_killed_child_is_started_again_and_its_jobs_run_again(tmp_path: Path) -> None:
    assert_holds(child_kills.prove(tmp_path, child_kills.Plan(kills=3, at_once=20)))
