from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner

import windlass
from tests.http.asgi import Reply, ask
from tests.http.dashboard.given_dashboard import PAGE, GivenDashboard, a_dashboard, read
from tests.http.given_app import secret_of
from windlass.api.roles import Role
from windlass.cli.program import program
from windlass.http import make_dashboard

SESSION = "/api/v1/session"
OURS = ("sec-fetch-site", "same-origin")
ELSEWHERE = (
    "//evil.test",
    "///evil.test",
    "//evil.test/%2f..",
    "/\\evil.test",
    "\\\\evil.test",
    "/\t/evil.test",
    "/\n/evil.test",
    "/\r\nLocation: https://evil.test",
    "\t//evil.test",
    " //evil.test",
    "/\u2028/evil.test",
    "/\u2215/evil.test",
    "/\uff0fevil.test",
    "\u2044\u2044evil.test",
    "/\x7f/evil.test",
    "https:evil.test",
    "https:/evil.test",
    "https://evil.test",
    "HTTPS://evil.test",
    "javascript:alert(1)",
    "data:text/html,x",
    "evil.test",
    "@evil.test",
    "?next=//evil.test",
    "#//evil.test",
    "",
)


async def log_in(given: GivenDashboard, *headers: tuple[str, str], who: str = Role.VIEW) -> Reply:
    return await ask(given.app, "POST", SESSION, headers=[OURS, *headers], json={"token": secret_of(who)})


def cookie_of(reply: Reply) -> tuple[str, str]:
    return ("cookie", (reply.header("set-cookie") or "").partition(";")[0])


async def led_to(given: GivenDashboard, wanted: str, *, root_path: str = "") -> str:
    """Return where the page of the login leads whoever came with `next=wanted`."""
    reply = await given.get(f"{root_path}/login?next={quote(wanted, safe='')}", who=None, root_path=root_path)
    assert reply.status == 200, reply.body
    return read(reply.body).one("form", id="login").attributes["data-next"]


@pytest.mark.parametrize("wanted", ELSEWHERE)
async def test_a_login_leads_to_no_other_site(wanted: str) -> None:
    async with a_dashboard() as given:
        assert await led_to(given, wanted) == "/"
        assert await led_to(given, wanted, root_path="/windlass") == "/windlass/"


@pytest.mark.parametrize("wanted", ["/", "/jobs", "/jobs?state=dead&text=a%2Fb", "/jobs/0199a3c2-7f4e-7000-8000-0"])
async def test_a_login_leads_to_the_page_that_was_wanted(wanted: str) -> None:
    async with a_dashboard() as given:
        assert await led_to(given, wanted) == wanted
        assert await led_to(given, wanted, root_path="/windlass") == f"/windlass{wanted}"


@pytest.mark.parametrize("query", ["next=/jobs&next=//evil.test", "next=/%00/evil.test", "next=/%ff", "to=//evil.test"])
async def test_where_to_go_must_be_one_text(query: str) -> None:
    async with a_dashboard() as given:
        reply = await given.get(f"/login?{query}", who=None)

    assert reply.status == 422
    assert reply.header("location") is None


async def test_a_browser_is_led_to_the_login_and_is_known_until_it_logs_out() -> None:
    async with a_dashboard() as given:
        before = await given.get("/jobs?state=dead", who=None)
        cookie = cookie_of(await log_in(given, who=Role.ADMIN))
        page = await ask(given.app, "GET", "/audit", headers=[PAGE, cookie])
        logout = await ask(given.app, "DELETE", SESSION, headers=[cookie, OURS])
        after = await ask(given.app, "GET", "/audit", headers=[PAGE, cookie])

    assert (before.status, before.header("location")) == (303, "/login?next=%2Fjobs%3Fstate%3Ddead")
    assert read(page.body).one(class_="who").text == "admin"
    assert read(page.body).all("button", id="logout")
    assert (logout.status, after.status, after.header("location")) == (200, 303, "/login?next=%2Faudit")


async def test_the_cookie_is_for_this_site_alone_and_out_of_the_reach_of_scripts() -> None:
    async with a_dashboard() as given:
        first = await log_in(given)
        second = await log_in(given, cookie_of(first))
        old = await ask(given.app, "GET", "/api/v1", headers=[cookie_of(first)])
        new = await ask(given.app, "GET", "/api/v1", headers=[cookie_of(second)])

    assert (first.header("set-cookie") or "").split("; ")[1:] == [
        "Path=/",
        "Max-Age=43200",
        "HttpOnly",
        "SameSite=Strict",
    ]
    assert (old.status, new.status) == (401, 200)


@pytest.mark.parametrize(
    "https, begins, ends", [(True, "__Host-windlass=", "; Secure"), (False, "windlass=", "=Strict")]
)
async def test_a_mounted_dashboard_lets_browsers_log_in_with_a_token_of_a_file(
    https: bool,  # noqa: FBT001 - as the parameter
    begins: str,
    ends: str,
    tmp_path: Path,
) -> None:
    file = tmp_path / "tokens.toml"
    new = ["token", "new", "--name", "ada", "--role", "operate", "--tokens", str(file)]
    token = CliRunner().invoke(program, new).stdout.strip()

    async with windlass.connect("memory://") as client:
        app = make_dashboard(client, tokens=file, https=https)
        outside = await ask(app, "GET", "/audit", headers=[PAGE])
        login = await ask(app, "POST", SESSION, headers=[OURS], json={"token": token})
        inside = await ask(app, "GET", "/audit", headers=[PAGE, cookie_of(login)])

    assert (outside.status, outside.header("location")) == (303, "/login?next=%2Faudit")
    assert (login.header("set-cookie") or "").startswith(begins)
    assert (login.header("set-cookie") or "").endswith(ends)
    assert (inside.status, read(inside.body).one(class_="who").text) == (200, "ada")


async def test_nothing_of_the_store_is_on_the_page_of_the_login() -> None:
    async with a_dashboard() as given:
        await given.client.enqueue("secret-queue", b"hello")
        reply = await given.get("/login", who=None)

    assert b"secret-queue" not in reply.body
    assert b"memory://" not in reply.body


async def test_a_program_without_a_token_is_not_led_anywhere() -> None:
    async with a_dashboard() as given:
        page = await ask(given.app, "GET", "/audit")
        api = await ask(given.app, "GET", "/api/v1/queues", headers=[PAGE])
        stream = await ask(given.app, "GET", "/live/audit", headers=[PAGE])
        change = await ask(given.app, "POST", "/api/v1/queues/pause", headers=[PAGE], json={"queue": "mail"})

    assert [(reply.status, reply.error) for reply in (page, api, stream, change)] == [(401, "not_allowed")] * 4
