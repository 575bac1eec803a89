from tests.http.asgi import Reply, ask
from tests.http.given_app import GivenApp, an_app, secret_of
from windlass.api.roles import Role
from windlass.http.app import Api
from windlass.http.throttle import FAILURES

SESSION = "/api/v1/session"
SAME_SITE = ("sec-fetch-site", "same-origin")


async def _login(given: GivenApp, who: str) -> Reply:
    return await ask(given.api, "POST", SESSION, headers=[SAME_SITE], json={"token": secret_of(who)})


async def test_a_session_stands_for_its_token_until_the_logout() -> None:
    async with an_app() as given:
        reply = await _login(given, Role.VIEW)
        cookie = ("cookie", (reply.header("set-cookie") or "").partition(";")[0])
        inside = await ask(given.api, "GET", "/api/v1", headers=[cookie])
        forbidden = await ask(given.api, "GET", "/api/v1/audit", headers=[cookie])
        logout = await ask(given.api, "DELETE", SESSION, headers=[cookie, SAME_SITE])
        outside = await ask(given.api, "GET", "/api/v1", headers=[cookie])

    assert (reply.status, reply.document["name"], reply.document["roles"]) == (200, "view", ["view"])
    assert "HttpOnly; SameSite=Strict" in (reply.header("set-cookie") or "")
    assert (inside.status, inside.document["name"], forbidden.status) == (200, "view", 403)
    assert (logout.status, outside.status) == (200, 401)
    assert "Max-Age=0" in (logout.header("set-cookie") or "")


async def test_wrong_tokens_are_counted_at_the_login_too() -> None:
    async with an_app() as given:
        statuses = [(await _login(given, "wrong")).status for _ in range(FAILURES + 1)]
        right = await _login(given, Role.VIEW)

    assert statuses == [401] * FAILURES + [429]
    assert right.status == 200


async def test_a_login_from_another_site_is_refused() -> None:
    async with an_app() as given:
        foreign = [("sec-fetch-site", "cross-site")]
        reply = await ask(given.api, "POST", SESSION, headers=foreign, json={"token": secret_of(Role.VIEW)})

    assert reply.status == 403


async def test_where_nobody_logs_in_there_is_no_session() -> None:
    async with an_app() as given:
        api = Api(given.client)
        reply = await ask(api, "POST", SESSION, headers=[SAME_SITE], json={"token": secret_of(Role.VIEW)})

    assert (reply.status, reply.error) == (404, "not_found")
