"""A campaign that fails leaves all that there is to look at in the `tmp_path` of its test, as one of `proofs` does."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import pytest

from proofs.remains import Remains

HELD: Final = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[HELD] = report.passed
    return report


@pytest.fixture(autouse=True)
def remains(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """The data of its servers beside its ledger and its store."""
    left = Remains(tmp_path)
    with left.of_servers():
        yield
        left.held = request.node.stash.get(HELD, False)
