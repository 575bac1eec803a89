"""Which tests `make test` leaves out, by markers that pyproject.toml explains.

Whole modules have theirs from the table here, all their tests alike, and so do those on a store that is a variant of
another one. A single test has its marker in its own file.
"""

from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from typing import Final

import pytest

from tests.each_store import VARIANTS

MARKED: Final = {
    "engine": tuple(
        f"windlass.testing.conformance.{part}"
        for part in (
            "serving", "starting", "scheduler", "slots", "attempts", "surroundings", "contexts", "context_transactions",
            "limits", "stopping", "tenants", "failing", "clocks",
        )
    ),
    "exhaustive": (
        "tests.damage.*", "tests.stores.*.test_damaged*", "tests.stores.postgres.test_least_rights",
        "tests.engine.test_hostile_handlers", "tests.http.dashboard.test_hostile", "tests.http.test_schemathesis",
        "tests.properties.test_daylight_saving", "tests.properties.test_machine",
    ),
    "fault": (
        "tests.chaos.*", "tests.stores.*.test_faults*", "tests.stores.*.test_upkeep_cut_off",
        "tests.stores.http.test_lost_replies", "tests.stores.postgres.test_durability",
        "tests.stores.postgres.test_lost_commits", "tests.stores.postgres.test_migrate_killed",
        "tests.stores.sqlite.test_killed_holder", "tests.parent.test_rolling_restart",
    ),
    "program": (
        "tests.browser.*", "tests.demo.test_demo", "tests.cli.test_dashboard", "tests.cli.test_owned",
        "tests.cli.test_processes", "tests.cli.test_serve", "tests.cli.test_unreachable", "tests.parent.test_fenced",
        "tests.parent.test_replacing", "tests.parent.test_restarts", "tests.parent.test_signals",
        "tests.parent.test_worker_metrics", "tests.docs.test_first_queue", "tests.docs.test_own_store",
        "tests.docs.test_run_on_postgres", "tests.docs.test_ten_minutes",
    ),
    "slow": (
        "tests.cli.top.test_screen", "tests.docs.test_commands_page", "tests.http.test_generated_client",
        "tests.http.test_payload_reading", "tests.postgres.test_*", "tests.slatedb.test_weed",
        "tests.stores.postgres.test_claim_transactions", "tests.stores.postgres.test_connections",
        "tests.stores.postgres.test_departure", "tests.stores.postgres.test_extremes",
        "tests.stores.postgres.test_joined_*", "tests.stores.postgres.test_lent_transactions",
        "tests.stores.postgres.test_login*", "tests.stores.postgres.test_marks",
    ),
}  # fmt: skip
"""The names of modules, with `*` for any letters."""


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that are collected."""
    for item in items:
        if isinstance(item, pytest.Function):
            for marker in _markers_of(item.obj.__module__):
                item.add_marker(marker)
            if hasattr(item, "callspec") and _is_on_a_variant(item.callspec.params.values()):
                item.add_marker(pytest.mark.variant)


@cache
def _markers_of(module: str) -> list[str]:
    return [marker for marker, modules in MARKED.items() if any(fnmatch(module, each) for each in modules)]


def _is_on_a_variant(parameters: Iterable[object]) -> bool:
    return any(isinstance(each, str) and each in VARIANTS for each in parameters)
