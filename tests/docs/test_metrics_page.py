"""The page about metrics, its alerts and the dashboard name what there is, and all of it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import windlass
from tests.docs.pages import DOCS, named, rows
from windlass.core.stats import Totals
from windlass.engine.tally import LOST, OUTCOMES
from windlass.metrics.exposition import registry_with, written
from windlass.metrics.of_server import ServerCollector
from windlass.metrics.of_store import StoreMetrics

PAGE = "howto/watch-it-with-prometheus.md"
DASHBOARD: dict[str, Any] = json.loads(Path(DOCS / "grafana-dashboard.json").read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
NAME = re.compile(r"windlass_\w+")


def names(text: bytes) -> set[str]:
    """Every family of ours in a text of metrics, as it is written."""
    found = text_string_to_metric_families(text.decode())
    return {f"{each.name}_total" if each.type == "counter" else each.name for each in found if NAME.match(each.name)}


@pytest.fixture(scope="module")
def of_workers() -> set[str]:
    return names(written(registry_with(ServerCollector(lambda: None)))) - {"windlass_build_info"}


@pytest.fixture
async def of_stores() -> set[str]:
    async with windlass.connect("memory://") as client:
        return names(await StoreMetrics(client).written()) - {"windlass_build_info"}


def test_the_page_has_every_metric(of_stores: set[str], of_workers: set[str]) -> None:
    assert {name for name, *_ in rows(PAGE, "metric")} == of_stores
    assert {name for name, *_ in rows(PAGE, "of a process")} == of_workers


def test_the_page_has_every_event_and_every_outcome() -> None:
    told = {name: meaning for table in ("metric", "of a process") for name, _, meaning in rows(PAGE, table)}

    assert told["windlass_queue_events_total"].endswith(": " + ", ".join(Totals._fields))
    outcomes = told["windlass_worker_attempts_total"].partition(": ")[2].split(", ")
    assert set(outcomes) == {*OUTCOMES.values(), LOST}


def test_the_dashboard_and_the_alerts_name_only_what_there_is(of_stores: set[str], of_workers: set[str]) -> None:
    alerts = named(PAGE, "yaml")["alerts.yml"]
    asked = {name for text in (json.dumps(DASHBOARD), alerts) for name in NAME.findall(text)}

    assert {name.removesuffix("_bucket") for name in asked} <= of_stores | of_workers
    assert len(asked) > 10


def test_the_panels_of_the_dashboard_can_be_told_apart_and_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells

    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert all(panel["description"] and panel["targets"] for panel in PANELS)
    wanted = ("Throughput", "Failures", "Depth", "Oldest waiting", "Wait", "Run", "Retries", "Rescues", "Lease losses")
    assert {*wanted, "Servers"} <= {panel["title"] for panel in PANELS}
