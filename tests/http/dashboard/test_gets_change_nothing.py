import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.hostile_jobs import Filled, fill
from tests.http.asgi import ask
from tests.http.dashboard.every_way import ways_of
from tests.http.dashboard.given_dashboard import PAGE, GivenDashboard, a_dashboard
from tests.http.dashboard.watching import watch
from tests.http.given_app import secret_of
from tests.http.given_tokens import bearer
from tests.http.streams import Stream, time_passes
from windlass.api.operations import ROOT
from windlass.api.roles import Role
from windlass.http.dashboard.endpoints import LIVE
from windlass.http.dashboard.pages.table import VIEWS
from windlass.testing import FakeClock

TEXT = "harmless"


async def test_no_page_and_no_stream_changes_anything(tmp_path: Path) -> None:
    database, clock = tmp_path / "jobs.db", FakeClock()
    async with a_dashboard(f"sqlite:///{database}?synchronous=normal", clock=clock) as given:
        filled = await fill(given.client.store, TEXT, now=clock.now())
        # by now leases have run out, jobs have come due, and servers are gone: looks leave that to others
        clock.advance(2 * 60 * 60)
        before = _dump(database)
        statuses = [await _look(given, target) for target in _targets(given, filled)]
        after = _dump(database)
        await given.done("/queues/resume", {"queue": "queue"})

        assert after == before
        assert _dump(database) != before
    assert {*statuses} <= {200, 405, 422}
    assert statuses.count(200) > 2 * len(VIEWS)


def _targets(given: GivenDashboard, filled: Filled) -> Iterator[tuple[str, str]]:
    """Return the methods and addresses of all pages, with each of their parameters, and of their files and streams."""
    for way in ways_of(given):
        if not way.path.startswith((ROOT, "/health", "/metrics")):
            yield from ((method, way.target(filled.ids["dead"])) for method in ("GET", "HEAD", "OPTIONS"))
    for view in VIEWS:
        path = view.path.replace("{id:uuid}", filled.ids["dead"])
        yield from (("GET", f"{path}?{field}={TEXT}") for field in view().asks.__struct_fields__)


async def _look(given: GivenDashboard, target: tuple[str, str]) -> int:
    method, path = target
    if method == "GET" and path.startswith(LIVE):
        return await _watch(given, path.removeprefix(LIVE))
    return (await ask(given.app, method, path, headers=[PAGE, bearer(secret_of(Role.ADMIN))])).status


async def _watch(given: GivenDashboard, path: str) -> int:
    """Read a stream until it has told how the page looks."""
    clock = given.client.clock
    assert isinstance(clock, FakeClock)
    async with watch(given, Stream(), path) as stream:
        while not (await stream.parts.get()).startswith(b"data:"):
            await time_passes(clock, stream)
        return stream.status


def _dump(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return list(connection.iterdump())
