"""Every store beside the model."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

pytest.register_assert_rewrite(*(f"windlass.testing.{part}" for part in ("compared", "schedule_rules", "machine")))

from tests.each_store import STORES, new_url  # noqa: E402 - the line above comes first
from windlass.connect import open_store  # noqa: E402 - as above
from windlass.testing.machine import Place, run_machine  # noqa: E402 - as above


@pytest.mark.parametrize("store", STORES)
def test_every_store_does_what_the_model_does(store: str) -> None:
    @contextmanager
    def fresh() -> Generator[Place]:
        with new_url(store) as url:
            yield lambda clock, rng: open_store(url, clock=clock, rng=rng)

    run_machine(fresh)
