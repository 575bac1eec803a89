from typing import Any

import msgspec
import pytest

from tests.hostile_jobs import Filled, fill
from tests.http.asgi import ask
from tests.http.dashboard.given_dashboard import GivenDashboard, a_dashboard
from tests.http.dashboard.watching import WatchedDashboard, Watching, a_watched_dashboard, watch
from tests.http.given_app import LIMITED, secret_of
from tests.http.given_tokens import bearer
from windlass.api.operations import OPERATIONS, ROOT
from windlass.api.roles import Role
from windlass.http.dashboard.pages.table import VIEWS
from windlass.http.dashboard.view import View
from windlass.testing import FakeClock

MARK = "their-secret"
OF_ALL = {each.path: each.roles for each in OPERATIONS if each.method == "POST"}


@pytest.mark.parametrize("who", [*Role, None])
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
async def test_a_page_and_its_stream_are_for_its_roles_alone(view: type[View[Any]], who: Role | None) -> None:
    async with a_dashboard() as given:
        job = await given.client.enqueue("mine")
        path = view.path.replace("{id:uuid}", job.id)
        page = await given.get(path, who=who)
        # what is asked for fits nowhere, so that no stream begins: who may ask is looked at first
        headers = [] if who is None else [bearer(secret_of(who))]
        stream = await ask(given.app, "GET", f"/live{path}?nonsense=1", headers=headers)

    allowed = who is Role.ADMIN or who in view.roles
    assert page.status == (303 if who is None else 200 if allowed else 403)
    assert stream.status == (401 if who is None else 422 if allowed else 403)


@pytest.mark.parametrize("who", Role)
async def test_a_page_offers_only_what_its_reader_may_do(who: Role) -> None:
    async with a_dashboard() as given:
        filled = await fill(given.client.store, "harmless", now=given.client.clock.now())
        buttons = [button for page in await _pages(given, filled, who) for button in page]

    refused = [path for path in buttons if who is not Role.ADMIN and who not in OF_ALL[ROOT + path]]
    assert refused == []
    if who in (Role.OPERATE, Role.ADMIN):
        assert {*buttons} >= {"/jobs/retry", "/jobs/delete", "/jobs/cancel", "/queues/resume"}


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
async def test_who_is_limited_to_a_queue_sees_nothing_of_another_one(view: type[View[Any]]) -> None:
    async with a_watched_dashboard() as given:
        now = given.client.clock.now()
        mine = await fill(given.client.store, "mine", now=now, name="mine")
        theirs = await fill(given.client.store, MARK, now=now, name="theirs")
        paths = [
            view.path.replace("{id:uuid}", id) for id in (mine.ids["dead"], theirs.ids["dead"], theirs.ids["running"])
        ]
        fields = view().asks.__struct_fields__
        targets = [
            *paths,
            *(f"{path}?{field}={text}" for path in paths for field in fields for text in ("theirs", "1")),
        ]
        told = [await _seen(given, target) for target in dict.fromkeys(targets)]

    assert [each for each in told if MARK in each] == []
    of_all = [f"{MARK}", *theirs.ids.values()]
    # the audit is of the whole store, and refused
    assert any("mine" in each for each in told) or view.name == "audit"
    assert not any(id in each for each in told for id in of_all if id not in str(targets))


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
async def test_who_is_limited_sees_the_same_whoever_looks_beside_them(view: type[View[Any]]) -> None:
    """What is kept for one reader, or found for all who watch at a time, is not told to those who see less."""
    async with a_watched_dashboard() as given:
        now = given.client.clock.now()
        mine = await fill(given.client.store, "mine", now=now, name="mine")
        await fill(given.client.store, MARK, now=now, name="theirs", parent=mine.ids["dead"])
        path = view.path.replace("{id:uuid}", mine.ids["dead"])
        other = GivenDashboard(given.client)
        alone = await other.get(path, who=LIMITED), await _streamed(given.clock, other, path)
        await other.app.close()
        await given.get(path, who=Role.ADMIN)
        page = await given.get(path, who=LIMITED)
        async with given.watch(path, who=Role.ADMIN):
            beside = page, await _streamed(given.clock, given, path)

    assert beside[0].body == alone[0].body
    assert beside[1] == alone[1]
    assert any(name in str(alone) for name in ("mine", "403"))


async def test_a_job_of_another_queue_is_as_one_that_is_not_there() -> None:
    async with a_dashboard() as given:
        theirs = await fill(given.client.store, MARK, now=given.client.clock.now(), name="theirs")
        found = await given.get(f"/jobs/{theirs.ids['dead']}", who=LIMITED)
        nowhere = await given.get("/jobs/0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d", who=LIMITED)

    assert found.status == nowhere.status == 404
    assert found.body.replace(theirs.ids["dead"].encode(), b"") == nowhere.body.replace(
        b"0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d", b""
    )


async def _pages(given: GivenDashboard, filled: Filled, who: Role) -> list[list[str]]:
    """Return the calls that the buttons of each page make."""
    found: list[list[str]] = []
    for view in VIEWS:
        for id in filled.ids.values():
            reply = await given.get(view.path.replace("{id:uuid}", id), who=who)
            if reply.status == 200:
                page = await given.page(view.path.replace("{id:uuid}", id), who=who)
                found.append([each.attributes["data-call"] for each in page.all(data_call=None)])
    return found


async def _streamed(clock: FakeClock, given: GivenDashboard, path: str) -> list[Any]:
    """Return what a stream tells in its first seconds."""
    async with watch(given, Watching(), path, who=LIMITED) as browser:
        await clock.let_pass(2.5)
        return browser.told()


async def _seen(given: WatchedDashboard, target: str) -> str:
    """Return all that a page and its stream tell, right after somebody who sees everything has looked at the same."""
    await given.get(target, who=Role.ADMIN)
    page = await given.get(target, who=LIMITED)
    async with given.watch(target, who=Role.ADMIN), given.watch(target, who=LIMITED) as browser:
        await given.clock.let_pass(1.5)
        streamed = msgspec.json.encode(browser.told())
    assert page.status in (200, 403, 404, 422)
    return f"{page.body.decode()} {streamed.decode()}"
