from collections.abc import Sequence

import pytest

from tests.http.asgi import Sender, ask
from tests.http.dashboard.every_way import UNSAFE, EveryWay, logged_in, ways_of
from tests.http.dashboard.given_dashboard import PAGE, GivenDashboard, a_dashboard
from tests.http.given_app import secret_of
from tests.http.given_tokens import bearer
from windlass.api.roles import Role
from windlass.http.health import LIVE, READY

HOST = "localhost:8000"
OURS = [("sec-fetch-site", "same-origin"), ("origin", f"http://{HOST}")]
THEIRS: Sequence[list[tuple[str, str]]] = (
    [("sec-fetch-site", "cross-site")],
    [("sec-fetch-site", "same-site")],
    [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
    [("origin", "http://evil.test")],
    [("origin", "null")],
    [("origin", "null"), ("sec-fetch-site", "same-origin")],
    [],
)
"""What a browser says of a request that a page of another site has sent; an old one may say nothing."""
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain")
STRANGERS = (
    "evil.test",
    "evil.test:8000",
    "user@localhost",
    "localhost.",
    "[::1]evil",
    "localhost.evil.test",
    "[2001:db8::1]:8000",
)


@pytest.mark.parametrize("site", THEIRS, ids=str)
async def test_a_page_of_another_site_changes_nothing_by_any_way(site: list[tuple[str, str]]) -> None:
    async with a_dashboard() as given:
        cookie = ("cookie", await logged_in(given))
        replies = [await _change(given, way, method, [cookie, *site]) for way, method in _changes(given)]

    assert {*replies} == {(403, "cross_site")}


@pytest.mark.parametrize("form", FORMS)
async def test_a_form_changes_nothing_by_any_way(form: str) -> None:
    async with a_dashboard() as given:
        sent = [("cookie", await logged_in(given)), *OURS, ("content-type", form), ("content-length", "2")]
        replies = [
            await ask(given.app, method, way.target(), headers=sent, host=HOST, sender=Sender([b"{}"]))
            for way, method in _changes(given)
        ]

    assert {(reply.status, reply.error) for reply in replies} == {(403, "cross_site")}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_page_of_another_site_loads_nothing_but_may_link_to_a_page(site: str) -> None:
    async with a_dashboard() as given:
        ways = [way for way in ways_of(given) if way.method == "GET" and way.path not in (LIVE, READY)]
        sent = [("cookie", await logged_in(given)), ("sec-fetch-site", site)]
        loaded = [
            (await ask(given.app, "GET", way.target(), headers=[*sent, ("sec-fetch-mode", mode)])).status
            for way in ways
            for mode in ("cors", "no-cors")
        ]
        followed = await ask(given.app, "GET", "/audit", headers=[*sent, PAGE, ("sec-fetch-mode", "navigate")])

    assert {*loaded} == {403}
    assert followed.status == 200


async def test_a_page_of_our_own_may_change_things() -> None:
    async with a_dashboard() as given:
        sent = [("cookie", await logged_in(given)), *OURS]
        paused = await ask(given.app, "POST", "/api/v1/queues/pause", headers=sent, host=HOST, json={"queue": "mine"})
        stats = await given.client.stats("mine")

    assert (paused.status, stats.paused) == (200, True)


@pytest.mark.parametrize("host", STRANGERS)
async def test_whoever_calls_it_by_another_name_gets_nothing_by_any_way(host: str) -> None:
    async with a_dashboard() as given:
        sent = [bearer(secret_of(Role.ADMIN)), PAGE]
        ways = [way for way in ways_of(given) if way.path not in (LIVE, READY)]
        replies = [await ask(given.app, way.method, way.target(), headers=sent, host=host) for way in ways]
        methods = [await ask(given.app, method, "/audit", headers=sent, host=host) for method in UNSAFE]

    assert {reply.status for reply in (*replies, *methods)} == {421}


async def test_the_name_that_a_proxy_tells_is_not_listened_to() -> None:
    told = [("x-forwarded-host", "localhost"), ("forwarded", "host=localhost"), ("x-forwarded-for", "127.0.0.1")]
    async with a_dashboard() as given:
        sent = [bearer(secret_of(Role.ADMIN)), PAGE]
        strange = await ask(given.app, "GET", "/audit", headers=[*sent, *told], host="evil.test")
        lied = [
            ("x-forwarded-host", "evil.test"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-prefix", "//evil.test"),
        ]
        known = await ask(given.app, "GET", "/audit", headers=[*sent, *lied])

    assert strange.status == 421
    assert (known.status, b"evil.test" in known.body) == (200, False)


def _changes(given: GivenDashboard) -> Sequence[tuple[EveryWay, str]]:
    """Return every path with every method that could change something, whether or not it means anything there."""
    paths = {way.path: way for way in ways_of(given)}
    assert {*UNSAFE} >= {way.method for way in ways_of(given)} - {"GET", "HEAD"}
    return [(way, method) for way in paths.values() for method in UNSAFE]


async def _change(
    given: GivenDashboard, way: EveryWay, method: str, headers: Sequence[tuple[str, str]]
) -> tuple[int, str]:
    reply = await ask(given.app, method, way.target(), headers=headers, host=HOST, json={})
    return reply.status, reply.error
