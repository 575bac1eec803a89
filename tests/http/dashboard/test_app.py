"""The dashboard as an app: who is let in by default, what every reply has, and a store that goes away."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import windlass
from tests.http.asgi import METHODS, ask
from tests.http.dashboard.every_way import EveryWay, ways_of
from tests.http.dashboard.given_dashboard import PAGE, a_dashboard, read
from tests.http.dashboard.watching import Watching
from tests.http.given_app import secret_of
from tests.http.given_tokens import bearer
from tests.http.in_process import InProcess
from tests.http.streams import read_by
from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.core.errors import InvalidValue
from windlass.http import Identity, make_app, make_dashboard
from windlass.http.app import Api
from windlass.http.auth import NoAuth
from windlass.http.dashboard.app import CSP, Dashboard
from windlass.http.front_door import DoorOptions, FrontDoor
from windlass.http.guard import EVERY_REPLY
from windlass.http.health import LIVE, READY
from windlass.http.login import SESSION
from windlass.system import SystemClock, SystemRng
from windlass.testing import FakeClock

STRANGE = (
    "..%2f..%2fapp.py",
    "../app.py",
    "../../templates/base.html",
    "..\\app.py",
    "style.css\x00.svg",
    "style.css%00",
    "/etc/passwd",
    "%2e%2e/app.py",
    "STYLE.CSS",
    "style.css/",
    "",
)


@asynccontextmanager
async def a_client() -> AsyncGenerator[Client]:
    async with windlass.connect("memory://") as client:
        yield client


def open_to_all(way: EveryWay) -> bool:
    """Whether a way is for everybody: it tells nothing of the store."""
    return way.path in (LIVE, READY, SESSION, "/login") or way.path.startswith("/static/")


async def test_by_default_everybody_is_refused_on_every_way_by_every_method() -> None:
    # a stream that is not refused would not end
    async with a_dashboard() as given, asyncio.timeout(60):
        await given.client.enqueue("mine", b"hello")
        app = Dashboard(given.client)
        closed = [way for way in ways_of(given) if not open_to_all(way)]
        replies = [
            await ask(app, method, way.target(), headers=sent)
            for way in closed
            for method in METHODS
            for sent in ([], [PAGE], [("cookie", "windlass=anything")])
        ]
        await app.close()

    assert len(closed) > 40
    # what could change something is refused for its cookie before anybody looks whose it is
    assert {reply.status for reply in replies} == {401, 403}
    assert not any(b"mine" in reply.body for reply in replies)


async def test_what_is_open_to_all_is_files_health_and_the_login() -> None:
    async with a_dashboard() as given:
        app = Dashboard(given.client)
        open_ways = [way for way in ways_of(given) if open_to_all(way)]
        known = {way.path: (await ask(app, way.method, way.target())).status for way in open_ways}
        await app.close()

    # where nobody can log in there is no page for it
    assert (known.pop("/login"), known.pop(SESSION)) == (401, 404)
    assert set(known.values()) == {200}


async def test_every_reply_of_every_way_protects_the_browser() -> None:
    async with a_dashboard() as given:
        for way in ways_of(given):
            if way.streams:
                continue
            for who in (None, Role.VIEW, Role.ADMIN):
                sent = [PAGE] if who is None else [PAGE, bearer(secret_of(who))]
                reply = await ask(given.app, way.method, way.target(), headers=sent)
                told = dict(reply.headers)

                assert told[b"content-security-policy"].decode() == CSP, way
                kept = way.path.startswith("/static/")
                assert told[b"cache-control"] == (b"public, max-age=31536000, immutable" if kept else b"no-store"), way
                for name in EVERY_REPLY.keys() - {b"content-security-policy", b"cache-control"}:
                    assert told[name] == EVERY_REPLY[name], (way, name)


def test_the_policy_of_the_pages_lets_nothing_run_but_files_of_this_host() -> None:
    policy = {name: value for name, _, value in (each.strip().partition(" ") for each in CSP.split(";"))}

    assert policy.pop("default-src") == policy.pop("frame-ancestors") == policy.pop("base-uri") == "'none'"
    assert set(policy) == {"script-src", "style-src", "img-src", "connect-src", "form-action"}
    assert set(policy.values()) == {"'self'"}


@pytest.mark.parametrize("name", STRANGE)
async def test_only_files_that_are_there_are_answered(name: str) -> None:
    async with a_dashboard() as given:
        folder = next(way.path for way in ways_of(given) if way.path.endswith("/style.css")).removesuffix("style.css")
        inside = await given.get(f"{folder}{name}")
        above = await given.get(f"/static/{name}")
        outside = await given.get(f"{folder}{name}", who=None)

    assert (inside.status, above.status) == (404, 404)
    assert outside.status == 303


@pytest.mark.parametrize("make", [make_app, make_dashboard])
async def test_who_mounts_an_app_says_who_is_let_in(
    make: Callable[..., Api | Dashboard], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    class Everybody:
        def identify(self, headers: object) -> Identity:
            del headers
            return Identity("somebody", frozenset({Role.VIEW}))

    async with a_client() as client:
        with caplog.at_level(logging.WARNING, "windlass.http"):
            nobody = make(client)
            everybody = make(client, insecure=True)
        known = make(client, auth=Everybody(), allowed_hosts=["jobs.example.com"])
        statuses = [(await ask(app, "GET", "/api/v1/queues")).status for app in (nobody, everybody, known)]
        elsewhere = await ask(known, "GET", "/api/v1/queues", host="jobs.example.com")
        with pytest.raises(InvalidValue, match="three answers"):
            make(client, auth=NoAuth(), insecure=True)
        with pytest.raises(InvalidValue, match="is a list of names"):
            make(client, insecure=True, allowed_hosts="jobs.example.com")
        with pytest.raises(InvalidValue, match="nothing"):
            make(client, tokens=tmp_path / "nothing.toml")

    assert (statuses, elsewhere.status) == ([401, 200, 200], 200)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "this app knows nobody and refuses everybody",
        "this app lets everybody do everything",
    ]


async def test_who_is_known_by_another_login_sees_a_name_and_no_way_to_log_out() -> None:
    class Everybody:
        def identify(self, headers: object) -> Identity:
            del headers
            return Identity("Ada", frozenset({Role.ADMIN}))

    async with a_client() as client:
        page = await ask(make_dashboard(client, auth=Everybody()), "GET", "/audit", headers=[PAGE])
        unknown = await ask(Dashboard(client), "GET", "/audit", headers=[PAGE])

    assert read(page.body).one(class_="who").text == "Ada"
    assert read(page.body).all(id="logout") == []
    assert unknown.status == 401
    assert "You are not known here" in read(unknown.body).one("main").text


def test_where_a_browser_finds_it_is_a_name_that_is_let_in() -> None:
    def url(**options: Any) -> str:  # noqa: ANN401 - as the options'
        door = FrontDoor(DoorOptions(insecure=True, **options), clock=FakeClock())
        found = door.clickable(8701)
        door.hosts.check(found.removeprefix("http://").removesuffix("/"))
        return found

    assert url() == "http://127.0.0.1:8701/"
    assert url(host="::1") == "http://[::1]:8701/"
    assert url(host="0.0.0.0") == "http://127.0.0.1:8701/"  # noqa: S104 - what is shown for it
    assert url(host="::", allowed_hosts=["jobs.example.com"]) == "http://jobs.example.com:8701/"


@pytest.mark.slow
async def test_a_store_that_goes_away_is_told_of_and_comes_back_by_itself() -> None:
    serving = InProcess("memory://", clock=SystemClock(), rng=SystemRng())
    await serving.start()
    store = serving.door(timeout="0.2")
    async with windlass.connect(store) as client:
        app = Dashboard(client, auth=NoAuth())
        watching = Watching()
        async with read_by(watching, app, "/live/audit", Role.ADMIN):
            before = await _told(watching)
            await serving.stop()
            away = await _told(watching)
            page = await ask(app, "GET", "/audit", headers=[PAGE])
            change = await ask(app, "POST", "/api/v1/queues/pause", json={"queue": "mail"})
            await serving.start()
            back = await _told(watching)
            again = await ask(app, "GET", "/audit", headers=[PAGE])
        await app.close()
    await serving.stop()

    assert before["regions"]
    assert "nothing listens" in away["away"]
    assert (page.status, read(page.body).one("h1").text) == (503, "The store does not answer")
    assert "Nothing listens" in read(page.body).one("main").text
    assert (change.status, change.document["facts"]["retryable"]) == (503, True)
    assert "away" not in back or back["away"] is None
    assert again.status == 200


async def _told(watching: Watching) -> Any:  # noqa: ANN401 - the JSON edge
    async with asyncio.timeout(20):
        while True:
            if (part := await watching.parts.get()).startswith(b"data:"):
                watching.parts.put_nowait(part)
                [told] = watching.told()
                return told
