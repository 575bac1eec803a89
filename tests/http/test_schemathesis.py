from pathlib import Path

import pytest

from proofs.http.http_fuzz import Plan, prove
from proofs.report import Verdict


@pytest.mark.parametrize("caller", ["anonymous", "viewer", "admin"])
def test_calls_that_are_made_up_from_the_document_are_answered_as_it_tells(caller: str, tmp_path: Path) -> None:
    # a few of each operation, in some seconds: `make proof PART=schemathesis` makes thousands
    report = prove(tmp_path, Plan(cases=50, phases=["examples", "fuzzing"], callers=[caller]))

    assert report.verdict is Verdict.HOLDS, report.text()
