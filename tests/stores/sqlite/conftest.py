"""A store of its own for each test, in a file."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import windlass
from windlass import Client
from windlass.core import failpoint


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    async with windlass.connect(url) as client:
        yield client


@pytest.fixture(autouse=True)
def no_failpoint_stays_armed() -> Iterator[None]:
    yield
    failpoint.disarm()
