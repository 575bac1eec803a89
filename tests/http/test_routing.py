"""A request finds its route by one look where the path says all, and by the same rules as by trying each."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from starlette.types import Message, Receive, Scope, Send

from windlass.http.refusal import Refusal
from windlass.http.routing import OnlyRoute, StraightRouter


class Seen:
    """An app that keeps what reached it."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send
        self.scopes.append(scope)


@asynccontextmanager
async def _lifespan(_: object) -> AsyncGenerator[None]:
    yield


def a_router(*ways: tuple[str, str, Seen]) -> StraightRouter:
    allowed = {path: ", ".join(method for method, other, _ in ways if other == path) for _, path, _ in ways}
    router = StraightRouter(_lifespan)
    router.lead([OnlyRoute(path, app, name=path, method=method, allowed=allowed) for method, path, app in ways])
    return router


async def ask(router: StraightRouter, method: str, path: str, **more: object) -> None:
    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        raise AssertionError(message)

    scope: Scope = {"type": "http", "method": method, "path": path, "root_path": "", **more}
    await router(scope, receive, send)


async def test_each_method_of_a_path_leads_to_its_own_app() -> None:
    get, post, first, second = Seen(), Seen(), Seen(), Seen()
    router = a_router(("GET", "/a", get), ("POST", "/a", post), ("GET", "/b", first), ("GET", "/b", second))

    await ask(router, "POST", "/a")
    await ask(router, "GET", "/b")

    assert [len(each.scopes) for each in (get, post, first, second)] == [0, 1, 1, 0]


async def test_an_app_is_told_its_route_and_parameters() -> None:
    plain, named = Seen(), Seen()
    router = a_router(("GET", "/jobs", plain), ("GET", "/jobs/{id}", named))

    await ask(router, "GET", "/jobs")
    await ask(router, "GET", "/jobs/7", path_params={"of": "outside"})
    await ask(router, "GET", "/jobs", path_params={"of": "outside"})

    assert [each["path_params"] for each in plain.scopes] == [{}, {"of": "outside"}]
    assert named.scopes[0]["path_params"] == {"of": "outside", "id": "7"}
    assert [each["route"].path for each in (*plain.scopes, *named.scopes)] == ["/jobs", "/jobs", "/jobs/{id}"]
    assert plain.scopes[0]["endpoint"] is plain


@pytest.mark.parametrize("path, root_path", [("/below/a", "/below"), ("/a", ""), ("/a", "/elsewhere")])
async def test_a_mounted_app_finds_its_routes_below_where_it_is_mounted(path: str, root_path: str) -> None:
    seen = Seen()

    await ask(a_router(("GET", "/a", seen)), "GET", path, root_path=root_path)

    assert len(seen.scopes) == 1


@pytest.mark.parametrize(
    "method, path, root_path, status",
    [
        ("POST", "/a", "", 405),
        ("HEAD", "/a", "", 405),
        ("get", "/a", "", 405),
        ("GET", "/A", "", 404),
        ("GET", "/a/", "", 404),
        ("GET", "//a", "", 404),
        ("GET", "/below/a", "", 404),
        ("GET", "/belowa", "/below", 404),
        ("GET", "/below", "/below", 404),
    ],
)
async def test_what_leads_nowhere_is_refused(method: str, path: str, root_path: str, status: int) -> None:
    with pytest.raises(Refusal) as refused:
        await ask(a_router(("GET", "/a", Seen())), method, path, root_path=root_path)

    assert refused.value.status == status
