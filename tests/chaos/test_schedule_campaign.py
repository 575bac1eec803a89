"""The campaign against the schedules, in small; see `test_campaigns`."""

from pathlib import Path

from proofs.kills import schedules
from proofs.report import Verdict


def test_each_due_time_makes_one_job_when_servers_are_killed(tmp_path: Path) -> None:
    plan = schedules.Plan(seconds=6, servers=2, kills=4, together=2, shortest_pause=1.2, longest_pause=2)

    report = schedules.prove(tmp_path, plan)

    assert report.verdict is Verdict.HOLDS, report.text()
