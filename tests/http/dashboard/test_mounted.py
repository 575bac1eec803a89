"""The dashboard below a path of another application, as the page on it shows that."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import django
import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test.utils import override_settings
from django.urls import path
from starlette.types import ASGIApp

from tests.docs.pages import named
from tests.http.asgi import Reply, ask
from tests.http.dashboard.given_dashboard import PAGE, Element, read
from tests.http.dashboard.watching import Watching, change_in
from tests.http.streams import read_by
from windlass.api.roles import Role

SHOWN = "howto/mount-the-dashboard.md"
HOST = "shop.example.com"
PREFIX = "/windlass"
ADA = ("cookie", "theme=dark; session=1")
BOB = ("cookie", "session=2")


def hello(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"hello from {request.path}")


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=False)
        django.setup()
    with override_settings(ROOT_URLCONF=(path("hello", hello),), ALLOWED_HOSTS=[HOST], MIDDLEWARE=[]):
        yield


@asynccontextmanager
async def an_application(program: str) -> AsyncGenerator[ASGIApp]:
    """Run a program of the page, by the name of its file, after those above it; give the app that it makes."""
    blocks = {**named(SHOWN, "python"), **named(SHOWN, "py")}
    names: dict[str, Any] = {}
    for name in dict.fromkeys(["staff.py", "web.py", program]):
        exec(compile(blocks[name], name, "exec"), names)  # noqa: S102 - a page of ours
    names["LOGGED_IN"].update({"1": "ada", "2": "bob"})
    async with names["lifespan"](None):
        yield names["application" if program == "asgi.py" else "app"]


async def get(app: ASGIApp, target: str, *headers: tuple[str, str]) -> Reply:
    return await ask(app, "GET", target, headers=[PAGE, *headers], host=HOST)


@pytest.mark.slow
@pytest.mark.parametrize("program", ["web.py", "starlette_web.py", "asgi.py"])
async def test_all_of_it_is_below_the_path_of_the_mount(program: str) -> None:
    async with an_application(program) as app:
        page = await get(app, f"{PREFIX}/audit", ADA)
        for link in _links(read(page.body)):
            assert link.startswith(f"{PREFIX}/"), link
            if "/static/" in link:
                assert (await get(app, link)).status == 200, link
        paused = await ask(
            app,
            "POST",
            f"{PREFIX}/api/v1/queues/pause",
            headers=[ADA, ("origin", f"https://{HOST}")],
            host=HOST,
            json={"queue": "mail"},
        )
        first = await get(app, f"{PREFIX}/", ADA)
        entries = read((await get(app, f"{PREFIX}/audit", ADA)).body).one("tbody").all("td")
        stream = read(page.body).one("body").attributes["data-stream"]
        watching = Watching()
        async with read_by(watching, _as(app, ADA), stream, Role.ADMIN):
            assert await watching.parts.get() == b": ok\n\n"
            regions = change_in(await watching.parts.get())["regions"]

    assert (page.status, paused.status) == (200, 200)
    assert first.status in (200, 404)
    assert stream == f"{PREFIX}/live/audit"
    assert [cell.text for cell in entries][1:4] == ["ada", "pause", "mail"]
    assert f'href="{PREFIX}/audit"' in regions["counts"]
    assert "mail" in regions["entries"]


@pytest.mark.parametrize("program", ["web.py", "starlette_web.py", "asgi.py"])
async def test_the_login_of_the_application_decides_who_may_what(program: str) -> None:
    async with an_application(program) as app:
        unknown = await get(app, f"{PREFIX}/audit")
        expired = await get(app, f"{PREFIX}/audit", ("cookie", "session=3"))
        viewer = await get(app, f"{PREFIX}/audit", BOB)
        looked = await get(app, f"{PREFIX}/api/v1/queues", BOB)
        login = await get(app, f"{PREFIX}/login")
        elsewhere = await ask(app, "GET", f"{PREFIX}/audit", headers=[PAGE, ADA], host="evil.test")

    assert [reply.status for reply in (unknown, expired, viewer, looked, login)] == [401, 401, 403, 200, 401]
    assert elsewhere.status == 421
    assert 'allowed_hosts=["evil.test"]' in read(elsewhere.body).one("main").text


async def test_what_is_beside_the_mount_is_djangos() -> None:
    async with an_application("asgi.py") as app:
        replies = [await get(app, target) for target in ("/hello", f"{PREFIX}er", "/")]
        bare = await get(app, PREFIX, ADA)
        slash = await get(app, f"{PREFIX}/", ADA)

    assert [reply.status for reply in replies] == [200, 404, 404]
    assert replies[0].body == b"hello from /hello"
    assert bare.status == slash.status
    assert bare.body == slash.body


def _links(page: Element) -> list[str]:
    found = [each.attributes[name] for name in ("href", "src") for each in page.all(**{name: None})]
    return [link for link in found if not link.startswith("#")]


def _as(app: ASGIApp, cookie: tuple[str, str]) -> ASGIApp:
    """Let all that is asked of an app come from a browser with this cookie, at the name that it has outside."""
    name, value = cookie

    async def asked(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        headers = [(b"host", HOST.encode()), (name.encode(), value.encode())]
        await app({**scope, "headers": headers}, receive, send)

    return asked
