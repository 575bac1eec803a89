from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

import pytest

from tests.http.asgi import ask
from tests.http.dashboard.every_way import EveryWay, ways_of
from tests.http.dashboard.given_dashboard import PAGE, GivenDashboard
from tests.http.dashboard.watching import Watching, watch
from tests.http.given_app import secret_of
from tests.http.given_tokens import bearer
from windlass import App, Context, JobFilter, Secret, StoreUnavailable
from windlass import given as given_here
from windlass.api.operations import ROOT
from windlass.api.roles import Role
from windlass.core.ids import JobId
from windlass.handlers.secret_paths import HEADER
from windlass.http.dashboard.endpoints import LIVE
from windlass.testing import FakeClock, in_memory

CANARY = "canary7c1b"
OPENED = {
    "/schedules": ("?id=harmless", "?id=raw"),
    "/dead": ("?error=LookupError", "?error=LookupError&ids=true"),
    "/jobs": ("?text=harmless", "?state=dead"),
}
"""Addresses of pages that show more than they do at first."""
NAMES = ("password", "api_key", "access_token", "client_secret", "Authorization", "cookie", "dsn", "passwd")


async def test_nobody_sees_a_secret_on_any_page_or_stream() -> None:
    async with _a_shop() as (given, jobs):
        ways = [way for way in ways_of(given) if not way.path.startswith(ROOT)]
        found = [
            (way.path, who)
            for way in ways
            for target in _targets(way, jobs)
            for who in Role
            if CANARY in await _told(given, way.method, target, who)
        ]

    assert found == []


async def test_who_only_views_sees_no_secret_by_the_api_of_a_dashboard() -> None:
    async with _a_shop() as (given, jobs):
        ways = [way for way in ways_of(given) if way.path.startswith(ROOT) and way.method == "GET" and not way.streams]
        told = {
            target: await _told(given, way.method, target, Role.VIEW) for way in ways for target in _targets(way, jobs)
        }

    assert [target for target, text in told.items() if CANARY in text] == []
    assert any("***" in text for text in told.values())


@pytest.mark.parametrize("who", [Role.VIEW, Role.ADMIN])
@pytest.mark.parametrize("part", [CANARY, CANARY[:8]])
async def test_nobody_finds_a_secret_by_looking_for_it(who: Role, part: str) -> None:
    async with _a_shop() as (given, jobs):
        found = await given.page(f"/jobs?text={part}", who=who)
        known = await given.page("/jobs?text=harmless", who=who)

    def links(page: object) -> list[str]:
        return [job for job in jobs if job in str(page)]

    assert links(found) == []
    assert links(known)


@pytest.mark.parametrize(
    "url", [f"postgres://shop:{CANARY}@db/shop", f"redis://:{CANARY}@db/0", f"http://db?token={CANARY}"]
)
async def test_the_password_of_the_store_is_on_no_page(url: str) -> None:
    async with in_memory(App("memory://")) as test:
        given = GivenDashboard(test.client, store=url)
        page = await given.get("/audit")
        await given.app.close()

    assert (page.status, CANARY.encode() in page.body, b"db" in page.body) == (200, False, True)


@asynccontextmanager
async def _a_shop() -> AsyncGenerator[tuple[GivenDashboard, list[JobId]]]:
    """Give a dashboard on a store with secrets in all places that have a way to say so, and the ids of the jobs."""
    app = App("memory://")

    @app.job(max_attempts=1)
    async def pay(pin: Annotated[str, Secret], amount: int, *, fails: bool = False) -> Mapping[str, str]:
        inside = f"{pin} {amount}"
        if fails:
            raise LookupError("the bank does not answer")
        return {"receipt": "harmless", "access_token": inside}

    @app.job(max_attempts=1)
    async def log_in(user: str, fields: Mapping[str, str], ctx: Context = given_here()) -> None:
        ctx.log.info("%s with %d fields", user, len(fields))
        raise StoreUnavailable("the store is away")

    async with in_memory(app, clock=FakeClock()) as test:
        secret: dict[str, str] = dict.fromkeys(NAMES, CANARY)
        await pay.enqueue(CANARY, 1)
        await pay.enqueue(CANARY, 2, fails=True)
        await log_in.options(headers={"note": "harmless", "x-api-key": CANARY}).enqueue("harmless", secret)
        # what no handler can read is an error, and must not tell it
        unreadable, paths = {"pin": CANARY, "amount": CANARY}, {HEADER: "pin,amount"}
        await test.client.enqueue("default", unreadable, kind="pay", max_attempts=1, headers=paths)
        await test.drain()
        await pay.enqueue(CANARY, 3)
        await test.client.enqueue("default", {"deep": [{"list": [secret]}]}, kind="raw", headers=secret)
        await test.client.schedules.put("harmless", "0 3 * * *", pay.call(CANARY, 4))
        await test.client.schedules.put("raw", "0 3 * * *", log_in.call("harmless", secret))
        jobs = [job.id for job in await test.client.jobs(JobFilter())]
        given = GivenDashboard(test.client)
        try:
            yield given, jobs
        finally:
            await given.app.close()


def _targets(way: EveryWay, jobs: Sequence[JobId]) -> list[str]:
    if "{id" in way.path:
        return [way.target(job) for job in jobs]
    return [way.target(), *(way.path + query for query in OPENED.get(way.path.removeprefix(LIVE), ()))]


async def _told(given: GivenDashboard, method: str, target: str, who: str) -> str:
    if target.startswith(f"{LIVE}/"):
        return await _streamed(given, target.removeprefix(LIVE), who)
    reply = await ask(given.app, method, target, headers=[PAGE, bearer(secret_of(who))])
    assert reply.status != 422, target
    return f"{reply.headers} {reply.body.decode()}"


async def _streamed(given: GivenDashboard, path: str, who: str) -> str:
    clock = given.client.clock
    assert isinstance(clock, FakeClock)
    async with watch(given, Watching(), path, who=who) as browser:
        await clock.let_pass(1.5)
        told = browser.told()
        assert told or browser.status == 403
        return str(told)
