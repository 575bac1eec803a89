"""The campaign of moves between stores, in small; see `test_campaigns`."""

from pathlib import Path

import pytest

from proofs.load import moves
from proofs.report import Verdict


# tests/client/test_mover_meanwhile.py shows a death at any step; this takes four stores and most of a minute
@pytest.mark.on_request
def test_a_move_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    report = moves.prove(tmp_path, moves.Plan(jobs=2_000, kills=4))

    assert report.verdict is Verdict.HOLDS, report.text()
