"""Every store beside the model."""

import pytest

pytest.register_assert_rewrite(*(f"windlass.testing.{part}" for part in ("compared", "schedule_rules", "machine")))

from tests.each_store import SERVED, STORES, new_place  # noqa: E402 - the line above comes first
from windlass.testing.machine import EXAMPLES, run_machine  # noqa: E402 - as above


@pytest.mark.parametrize("store", STORES)
def test_every_store_does_what_the_model_does(store: str) -> None:
    # what is behind is driven by itself: here it is about the way there
    run_machine(lambda: new_place(store), examples=max(EXAMPLES // 5, 1) if store in SERVED else EXAMPLES)
