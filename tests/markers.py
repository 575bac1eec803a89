"""Which tests `make test` leaves out, by markers that pyproject.toml explains.

Whole modules have theirs from the table here, all their tests alike. A test that runs on every store is a `variant` on
those that are variants of another one; where it has many cases, the first is for every store, and all others in memory
alone: on other stores they are `exhaustive`. A single test has its marker in its own file.
"""

from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from typing import Final

import pytest

from tests.each_store import ON_REQUEST, STORES, VARIANTS

MARKED: Final = {
    "engine": tuple(
        f"windlass.testing.conformance.{part}"
        for part in (
            "serving", "starting", "scheduler", "slots", "attempts", "surroundings", "contexts", "context_transactions",
            "limits", "stopping", "tenants", "failing", "clocks",
        )
    ),
    "exhaustive": (
        "tests.damage.*", "tests.engine.test_hostile_handlers", "tests.http.dashboard.test_hostile",
        "tests.http.dashboard.test_who_sees_what", "tests.http.test_schemathesis", "tests.properties.test_cron",
        "tests.properties.test_daylight_saving", "tests.properties.test_machine", "tests.stores.*.test_broken*",
        "tests.stores.*.test_damaged*", "tests.stores.postgres.test_least_rights", "tests.stores.redis.test_keys_*",
        "tests.stores.sqlite.test_bad_files",
    ),
    "fault": (
        "tests.chaos.*", "tests.http.test_crowd", "tests.stores.*.test_faults*", "tests.stores.*.test_upkeep_cut_off",
        "tests.stores.http.test_lost_replies", "tests.stores.postgres.test_durability",
        "tests.stores.postgres.test_lost_commits", "tests.stores.postgres.test_migrate_killed",
        "tests.stores.slatedb.test_closing", "tests.stores.slatedb.test_deadlines", "tests.stores.slatedb.test_fork",
        "tests.stores.slatedb.test_full_disk", "tests.stores.slatedb.test_unreachable",
        "tests.stores.sqlite.test_killed_holder", "tests.stores.test_faults*", "tests.stores.test_fork",
    ),
    "program": (
        "tests.browser.*", "tests.cli.test_dashboard", "tests.cli.test_owned", "tests.cli.test_processes",
        "tests.cli.test_serve", "tests.cli.test_unreachable", "tests.demo.test_demo", "tests.docs.test_backup_page",
        "tests.docs.test_first_queue", "tests.docs.test_own_store", "tests.docs.test_run_on_*",
        "tests.docs.test_ten_minutes", "tests.engine.executors.*", "tests.examples.*", "tests.parent.*",
        "tests.stores.slatedb.test_two_processes", "tests.test_event_loop", "tests.testing.test_plugin",
    ),
    "slow": (
        "tests.borrow.test_django", "tests.cli.test_migrate_postgres", "tests.cli.top.test_screen",
        "tests.docs.test_commands_page", "tests.docs.test_map_of_the_code", "tests.docs.test_redis_rights",
        "tests.http.test_generated_client", "tests.http.test_payload_reading", "tests.postgres.*", "tests.redis.*",
        "tests.schedule.test_campaign", "tests.slatedb.test_s3_servers", "tests.slatedb.test_weed",
        "tests.stores.*.test_look_costs", "tests.stores.postgres.test_*races*",
        "tests.stores.postgres.test_claim_transactions", "tests.stores.postgres.test_connections",
        "tests.stores.postgres.test_departure", "tests.stores.postgres.test_extremes",
        "tests.stores.postgres.test_joined*", "tests.stores.postgres.test_lent_transactions",
        "tests.stores.postgres.test_login*", "tests.stores.postgres.test_marks",
        "tests.stores.postgres.test_migrate", "tests.stores.postgres.test_rights",
        "tests.stores.postgres.test_session", "tests.stores.postgres.test_settlements_together",
        "tests.stores.redis.test_runner", "tests.stores.redis.test_spread*", "tests.stores.sqlite.test_connection",
        "tests.test_wheels",
    ),
}  # fmt: skip
"""The names of modules, with `*` for any letters."""


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that are collected."""
    shown: set[tuple[str, str]] = set()
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        for marker in _markers_of(item.obj.__module__):
            item.add_marker(marker)
        store = _store_of(item)
        if store in VARIANTS:
            item.add_marker(pytest.mark.variant)
            of_the_suite = item.obj.__module__.startswith(("windlass.testing.conformance.", "tests.client."))
            if of_the_suite and (store in ON_REQUEST or item.get_closest_marker("engine")):
                item.add_marker(pytest.mark.on_request)
        elif store is not None and store != "memory":
            test = item.nodeid.partition("[")[0]
            if (test, store) in shown:
                item.add_marker(pytest.mark.exhaustive)
            shown.add((test, store))


@cache
def _markers_of(module: str) -> list[str]:
    return [marker for marker, modules in MARKED.items() if any(fnmatch(module, each) for each in modules)]


def _store_of(item: pytest.Function) -> str | None:
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return next((each for each in parameters if isinstance(each, str) and each in STORES), None)
