"""The campaigns on Postgres, in small; see `test_campaigns`."""

from pathlib import Path
from uuid import uuid4

import pytest

from proofs.failover import failover
from proofs.fleet import fleet, terminations
from proofs.lost_replies import lost_replies
from proofs.report import Report, Verdict
from proofs.transactions import exactly_once, late_commit, transactions
from tests.postgres.pgbouncer import skip_without_pgbouncer
from windlass.stores.postgres.moves import receipts
from windlass.stores.postgres.work import Changes, Work


def assert_holds(report: Report) -> None:
    assert report.verdict is Verdict.HOLDS, report.text()


def test_a_fleet_gets_over_dead_servers_sessions_and_databases(tmp_path: Path) -> None:
    plan = fleet.Plan(
        jobs=800,
        servers=2,
        producers=2,
        kills=3,
        standstills=1,
        cuts=10,
        crashes=1,
        longest_down=1.0,
        ahead=300,
        lease=4.0,
        back_within=15.0,
    )

    assert_holds(fleet.prove(tmp_path, plan))


@pytest.mark.on_request  # half a minute and more
def test_without_the_fence_a_fleet_that_stands_still_is_found_out(tmp_path: Path) -> None:
    plan = fleet.Plan(
        jobs=600, servers=2, producers=2, kills=0, standstills=1, cuts=0, crashes=0, ahead=300, lease=4.0, fenced=False
    )

    report = fleet.prove(tmp_path, plan)

    assert report.verdict is Verdict.BROKEN
    assert "stale ends accepted: a success written before the last attempt had ended" in report.violations


@pytest.mark.on_request  # half a minute and more; the whole of it is a proof
def test_a_fleet_behind_pgbouncer_gets_over_all_of_that_and_over_a_dead_pool(tmp_path: Path) -> None:
    skip_without_pgbouncer()
    plan = fleet.Plan(
        jobs=1_500,
        servers=2,
        producers=2,
        kills=3,
        standstills=1,
        cuts=10,
        crashes=2,
        stops_too=True,
        longest_down=1.0,
        ahead=300,
        lease=4.0,
        back_within=15.0,
    )

    assert_holds(fleet.prove_through_pgbouncer(tmp_path, plan))


@pytest.mark.on_request  # half a minute and more; the whole of it is a proof
def test_a_database_that_is_gone_for_a_while_costs_no_rate(tmp_path: Path) -> None:
    plan = fleet.Plan(
        jobs=1_500,
        servers=2,
        producers=2,
        kills=0,
        cuts=0,
        crashes=2,
        stops_too=True,
        steady=True,
        longest_down=2.0,
        ahead=300,
        back_within=15.0,
    )

    assert_holds(fleet.prove_restarts(tmp_path, plan))


@pytest.mark.on_request  # twenty seconds and more; the whole of it is a proof
def test_a_standby_takes_over_and_nothing_that_it_has_is_lost(tmp_path: Path) -> None:
    plan = failover.Plan(failovers=3, unwaited=1, load=failover.Load(jobs_each=60, back_within=15.0))

    assert_holds(failover.prove(tmp_path, plan))


def test_a_lost_reply_makes_nothing_twice(tmp_path: Path) -> None:
    assert_holds(lost_replies.prove(tmp_path, lost_replies.Plan(replies=40)))


def test_without_receipts_lost_replies_do_things_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_another(changes: Changes, _: str | None, reply: str) -> Work[None]:
        """Write a receipt that nobody will ever meet again."""
        yield from receipts.write_receipt(changes, uuid4().hex, reply)

    for name in ("write_receipt", "write_receipt_unless_moved"):
        monkeypatch.setattr(f"windlass.stores.postgres.commands.{name}", write_another)

    report = lost_replies.prove(tmp_path, lost_replies.Plan(replies=40))

    assert report.verdict is Verdict.BROKEN
    assert "cancel a waiting job: answer" in report.text()


def test_what_is_written_with_the_settlement_is_written_once(tmp_path: Path) -> None:
    plan = exactly_once.Plan(jobs=150, kills=1, stops=1, longest=0.8, store="postgres")

    assert_holds(exactly_once.prove(tmp_path, plan))


def test_without_the_fence_effects_are_found_twice(tmp_path: Path) -> None:
    plan = exactly_once.Plan(jobs=100, kills=0, stops=1, longest=0.8, fenced=False, store="postgres")

    report = exactly_once.prove(tmp_path, plan)

    assert report.verdict is Verdict.BROKEN
    assert "jobs with their effect more than once" in report.violations


def test_exactly_the_committed_jobs_exist(tmp_path: Path) -> None:
    assert_holds(transactions.prove(tmp_path, transactions.Plan(commits=3, rollbacks=3)))


def test_a_job_that_commits_late_is_claimed_soon(tmp_path: Path) -> None:
    plan = late_commit.Plan(
        times=4, open_for=0.5, every=0.1, worked_before=6_000, others=5, within=5.0, raised_meanwhile=False
    )

    assert_holds(late_commit.prove(tmp_path, plan))


def test_ended_sessions_cost_nothing(tmp_path: Path) -> None:
    plan = terminations.Plan(calm=1, seconds=3, per_second=250, job=0.2, least=0.05)

    assert_holds(terminations.prove(tmp_path, plan))
