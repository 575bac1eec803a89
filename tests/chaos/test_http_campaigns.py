"""The campaigns over HTTP, in small; see `test_campaigns`."""

from pathlib import Path

import pytest

from proofs.fleet import http_fleet
from proofs.lost_replies import cases as lost_reply_cases
from proofs.lost_replies import lost_replies
from proofs.report import Report, Verdict


def assert_holds(report: Report) -> None:
    assert report.verdict is Verdict.HOLDS, report.text()


def test_a_fleet_gets_over_a_dead_serving_process_and_lost_replies(tmp_path: Path) -> None:
    plan = http_fleet.Plan(
        jobs=350,
        workers=2,
        producers=1,
        crashes=2,
        cuts=2,
        lost=0.1,
        longest_down=0.2,
        longest=0.6,
        ahead=200,
        rescue_after=0.5,
        back_within=15.0,
    )

    assert_holds(http_fleet.prove(tmp_path, plan))


def test_a_lost_reply_makes_nothing_twice(tmp_path: Path) -> None:
    assert_holds(lost_replies.prove_over_http(tmp_path, lost_replies.Plan(replies=40)))


def test_without_names_of_calls_lost_replies_do_things_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(_: str) -> bytes:
        """Never say which call it is."""
        return b""

    monkeypatch.setattr("windlass.stores.http.runner.request_header", forgetful)
    monkeypatch.setattr(lost_replies, "ALL", (lost_reply_cases.enqueue_one, lost_reply_cases.claim_some))

    report = lost_replies.prove_over_http(tmp_path, lost_replies.Plan(replies=1))

    assert report.verdict is Verdict.BROKEN
    assert "enqueue one: created: False" in report.text()
    assert "claim some: how many: 2, and not 3" in report.text()
