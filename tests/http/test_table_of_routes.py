from collections import Counter
from itertools import count
from typing import Any

import pytest

from tests.http.asgi import ask
from tests.http.given_app import GivenApp, an_app, secret_of
from tests.http.given_tokens import bearer
from windlass.api.operations import LOG, NEWS, OPERATIONS, Operation
from windlass.api.roles import Role
from windlass.http.routes.table import HANDLED
from windlass.http.routing import OnlyRoute

OTHERS = {
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/metrics"),
    ("POST", "/api/v1/session"),
    ("DELETE", "/api/v1/session"),
    ("GET", "/health/live"),
    ("HEAD", "/health/live"),
    ("GET", "/health/ready"),
    ("HEAD", "/health/ready"),
}
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE")
ID = "0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d"
_count = count()
PUBLIC = {path for _, path in OTHERS if path.startswith("/health")}


def test_every_operation_has_exactly_one_handler() -> None:
    handled = Counter(each.operation.name for each in HANDLED)

    assert handled + Counter([NEWS.name, LOG.name]) == Counter(operation.name for operation in OPERATIONS)
    assert max(handled.values()) == 1


async def test_every_route_is_an_operation_or_one_of_the_few_others() -> None:
    async with an_app() as given:
        found = _ways(given)

    operations = Counter((each.method, each.path.replace("{id}", "{id:uuid}")) for each in OPERATIONS)
    assert Counter(found) == operations + Counter(OTHERS)


async def test_nobody_gets_anything_of_an_app_that_was_told_of_nobody() -> None:
    async with an_app() as given:
        ways, given.tokens.tokens = _ways(given), []

        for path in {path for _, path in ways} - PUBLIC - {"/api/v1/session"}:
            for method in METHODS:
                for headers in ([], [bearer(secret_of(Role.ADMIN))]):
                    reply = await _ask(given, method, path, headers)
                    assert reply == 401, (method, path)


@pytest.mark.parametrize("who", [None, "wrong", *Role])
async def test_each_operation_is_for_its_roles_alone(who: str | None) -> None:
    headers = [] if who is None else [bearer(secret_of(who))]
    async with an_app() as given:
        for operation in OPERATIONS:
            for method in METHODS:
                path = operation.path.replace("{id}", ID)
                assert _verdict(await _ask(given, method, path, headers)) == _wanted(operation, method, who), (
                    method,
                    path,
                )


async def test_another_method_is_told_which_there_are() -> None:
    async with an_app() as given:
        reply = await ask(given.api, "PUT", "/api/v1/jobs", headers=[bearer(secret_of(Role.VIEW))])

    assert (reply.status, reply.error, reply.header("allow")) == (405, "method_not_allowed", "POST, GET")


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1/", "/api/v1/jobs/", "/api/v1/jobs/1", "/api/v2/jobs", "//api/v1"]
)
async def test_a_path_that_leads_nowhere_is_a_problem(path: str) -> None:
    async with an_app() as given:
        reply = await ask(given.api, "GET", path, headers=[bearer(secret_of(Role.VIEW))])

    assert (reply.status, reply.error) == (404, "not_found")


async def test_every_reply_tells_the_process_that_it_is_from() -> None:
    async with an_app() as given:
        replies = [await given.get(""), await given.get("", who=None), await given.get("/nowhere")]

        assert [reply.header("windlass-serving") for reply in replies] == [given.api.id] * 3
        assert replies[0].document["serving"] == given.api.id


async def test_it_can_be_mounted_below_a_path() -> None:
    async with an_app() as given:
        headers = [bearer(secret_of(Role.VIEW))]
        told = await ask(given.api, "GET", "/queue/api/v1/queues", root_path="/queue", headers=headers)
        live = await ask(given.api, "GET", "/queue/health/live", root_path="/queue")

    assert (told.status, told.document, live.status) == (200, {"queues": []}, 200)


def _ways(given: GivenApp) -> list[tuple[str, str]]:
    routes = [route for route in given.api.router.routes if isinstance(route, OnlyRoute)]
    assert len(routes) == len(given.api.router.routes)
    return [(method, route.path) for route in routes for method in route.methods or ()]


async def _ask(given: GivenApp, method: str, path: str, headers: list[tuple[str, str]]) -> int:
    # what is asked for fits nowhere, so that nothing is done: who may ask is looked at first
    target = path.replace("{id:uuid}", ID) + "?nonsense=1"
    # each from an address of its own: of many wrong tokens from one the last have to wait
    address = f"10.0.{(n := next(_count)) // 250}.{n % 250}"
    return (await ask(given.api, method, target, headers=headers, json=["nonsense"], address=address)).status


def _verdict(status: int) -> str:
    return {401: "nobody", 403: "forbidden", 405: "no method"}.get(status, "let in" if status == 422 else str(status))


def _wanted(operation: Operation[Any, Any], method: str, who: str | None) -> str:
    if who not in list(Role):
        return "nobody"
    ways = {each.method: each for each in OPERATIONS if each.path == operation.path}
    if method not in ways:
        return "no method"
    return "let in" if who in ways[method].roles else "forbidden"
