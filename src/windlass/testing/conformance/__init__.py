"""What every store must show, one behaviour per test. The suite is the specification.

A store proves itself by one test file of two parts: where it comes from, and this import.

    @pytest.fixture
    def new_store(clock: FakeClock, tmp_path: Path) -> Callable[[], Store]:
        return lambda: MyStore(tmp_path / "jobs", clock=clock)

    from windlass.testing.conformance import *

`new_store` makes a store that is not open yet. What it makes within one test are doors to the same jobs; a store that
can have only one door gives that one each time, and lets it be opened and closed as often as it is given.

Each test has jobs of its own, and the fixture `clock`, which stands still until the test moves it: no test sleeps. Most
go through `Client`, as users do; what no client shows goes through the store's protocol. What a store cannot do it says
in its `features`, and the tests read them. It needs pytest, and pytest-asyncio in its automatic mode.

It is installed by the distribution `windlass-conformance`, beside the `windlass` of the same version.
"""

from importlib import import_module
from typing import Final

import pytest

PARTS: Final = (
    "enqueueing",
    "job_ids",
    "claiming",
    "order",
    "scheduling",
    "settling",
    "fencing",
    "repeating",
    "rescuing",
    "retrying",
    "cancelling",
    "waiting",
    "unique",
    "conflicts",
    "retention",
    "counting",
    "reading",
    "records",
    "newest",
    "finding",
    "placing",
    "timing",
    "pausing",
    "kv",
    "locking",
    "schedules",
    "firing",
    "overlapping",
    "several_queues",
    "siblings",
    "moving",
    "parcels",
    "transactions",
    "serving",
    "starting",
    "scheduler",
    "slots",
    "attempts",
    "surroundings",
    "contexts",
    "context_transactions",
    "limits",
    "stopping",
    "tenants",
    "failing",
    "clocks",
)
FIXTURES: Final = (
    *("clock", "store", "transactional", "reach", "open_client", "client", "open_app", "app", "woken"),
    "counts_add_up",
)


def _collect() -> dict[str, object]:
    """Return every test by its name; two of one name would hide each other, and are refused."""
    found: dict[str, object] = {}
    for part in PARTS:
        module = import_module(f"{__name__}.{part}")
        tests = {name: value for name, value in vars(module).items() if name.startswith("test_")}
        if twice := found.keys() & tests.keys():
            raise AssertionError(f"two behaviours have one name: {sorted(twice)}")
        found |= tests
    fixtures = import_module(f"{__name__}.fixtures")
    return found | {name: getattr(fixtures, name) for name in FIXTURES}


# a failed assertion is told in full only by modules that are named before they are imported
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in ("fixtures", "reach", *PARTS)))
globals().update(_collect())
