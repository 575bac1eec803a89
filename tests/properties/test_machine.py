"""Every store beside the model.

A step takes longer the farther a store is away, so the farther ones try fewer examples here. `WINDLASS_EXAMPLES` is how
many each of them tries where it is set; the longest run is `make proof PART=machine`.
"""

import os
from typing import Final

import pytest

pytest.register_assert_rewrite(*(f"windlass.testing.{part}" for part in ("compared", "schedule_rules", "machine")))

from tests.each_store import STORES, VARIANTS, new_place  # noqa: E402 - the line above comes first
from windlass.testing.machine import EXAMPLES, run_machine  # noqa: E402 - as above

HERE: Final = {"memory": 75, "sqlite": 30, "redis": 22, "postgres": 15}
FARTHER: Final = 8
FARTHEST: Final = 3
"""Of a store whose moves another one shows: here it is about the way there."""


@pytest.mark.parametrize("store", STORES)
def test_every_store_does_what_the_model_does(store: str) -> None:
    here = HERE.get(store, FARTHEST if store in VARIANTS else FARTHER)
    wanted = EXAMPLES if "WINDLASS_EXAMPLES" in os.environ else here

    run_machine(lambda: new_place(store), examples=wanted)
