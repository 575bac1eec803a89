"""Every store beside the model."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

pytest.register_assert_rewrite(*(f"windlass.testing.{part}" for part in ("compared", "schedule_rules", "machine")))

from windlass.connect import open_store  # noqa: E402 - the line above comes first
from windlass.testing.machine import Place, run_machine  # noqa: E402


@contextmanager
def memory() -> Generator[Place, None, None]:
    yield lambda clock, rng: open_store("memory://", clock=clock, rng=rng)


@contextmanager
def sqlite() -> Generator[Place, None, None]:
    with TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "jobs.db"
        yield lambda clock, rng: open_store(f"sqlite:///{path}", clock=clock, rng=rng)


def test_the_memory_store_does_what_the_model_does() -> None:
    run_machine(memory)


def test_the_sqlite_store_does_what_the_model_does() -> None:
    run_machine(sqlite)
