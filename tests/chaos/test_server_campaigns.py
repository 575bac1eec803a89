"""The campaigns against the server, in small; see `test_campaigns`."""

from pathlib import Path

from proofs.kills import poison, server_kills, stops
from proofs.load import memory
from proofs.report import Report, Verdict
from proofs.transactions import exactly_once


def assert_holds(report: Report) -> None:
    assert report.verdict is Verdict.HOLDS, report.text()


def test_every_job_comes_to_its_end_once_when_servers_are_killed(tmp_path: Path) -> None:
    assert_holds(server_kills.prove(tmp_path, server_kills.Plan(jobs=600, kills=3)))


def test_a_job_that_kills_its_server_is_the_only_one_dead(tmp_path: Path) -> None:
    assert_holds(poison.prove(tmp_path, poison.Plan(rounds=1, jobs=200)))


def test_a_stop_costs_no_attempt_and_ends_in_time(tmp_path: Path) -> None:
    """With time to spare: the machine of a test is busy."""
    plan = stops.Plan(stops=10, jobs=1_000, processes=2, long=2, locked=1, spare=10)

    assert_holds(stops.prove(tmp_path, plan))


def test_what_is_written_with_the_settlement_is_written_once(tmp_path: Path) -> None:
    plan = exactly_once.Plan(jobs=200, kills=2, stops=1, longest=0.8)

    assert_holds(exactly_once.prove(tmp_path, plan))


def test_without_the_fence_effects_are_found_twice(tmp_path: Path) -> None:
    report = exactly_once.prove(tmp_path, exactly_once.Plan(jobs=100, kills=0, stops=1, longest=0.8, fenced=False))

    assert report.verdict is Verdict.BROKEN
    assert "jobs with their effect more than once" in report.violations


def test_a_server_with_many_jobs_in_line_stays_small(tmp_path: Path) -> None:
    assert_holds(memory.prove(tmp_path, memory.Plan(jobs=10_000)))
