from typing import Any

import pytest

from tests.http.asgi import ask
from tests.http.given_app import GivenApp, an_app, secret_of
from tests.http.given_tokens import bearer
from windlass.api.roles import Role
from windlass.core.errors import StoreUnavailable
from windlass.engine.config import ServerConfig
from windlass.http.app import Api
from windlass.http.auth import NoAuth
from windlass.http.services import ServingServices


@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_everybody_may_ask_whether_it_is_well_by_any_name(path: str, method: str) -> None:
    async with an_app() as given:
        reply = await ask(given.api, method, path, host="10.1.2.3:80")

    assert (reply.status, reply.document) == (200, {"ready": True})


async def test_without_its_store_it_lives_and_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_app() as given:
        _break(given, monkeypatch)
        live = await ask(given.api, "GET", "/health/live")
        ready = await ask(given.api, "GET", "/health/ready")
        known = await ask(given.api, "GET", "/health/ready", headers=[bearer(secret_of(Role.VIEW))])
        wrong = await ask(given.api, "GET", "/health/ready", headers=[bearer(secret_of("wrong"))])

    assert (live.status, ready.status, known.status) == (200, 503, 503)
    assert ready.document == wrong.document == {"ready": False}
    assert known.document == {"ready": False, "reasons": ["the store: no disk at 10.0.0.7"]}


async def test_the_store_is_asked_once_however_many_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_app() as given:
        asked = _break(given, monkeypatch)
        for _ in range(20):
            await ask(given.api, "GET", "/health/ready")

    assert len(asked) == 1


async def test_a_process_that_stops_is_not_ready() -> None:
    async with an_app() as given:
        given.api.stop_waiting()
        reply = await ask(given.api, "GET", "/health/ready", headers=[bearer(secret_of(Role.VIEW))])

    assert (reply.status, reply.document["reasons"]) == (503, ["it stops"])


async def test_a_process_whose_services_do_not_run_is_not_ready() -> None:
    async with an_app() as given:
        services = ServingServices(given.client, ServerConfig())
        api = Api(given.client, auth=NoAuth(), services=services)
        before = await ask(api, "GET", "/health/ready")
        await services.start()
        after = await ask(api, "GET", "/health/ready")
        await services.stop()
        await api.close()

    assert (before.status, before.document["reasons"]) == (503, ["its services do not run"])
    assert after.status == 200


def _break(given: GivenApp, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    asked: list[object] = []

    async def fail(*args: Any) -> None:  # noqa: ANN401 - as the store's
        asked.append(args)
        message = "no disk at 10.0.0.7"
        raise StoreUnavailable(message, retryable=True)

    monkeypatch.setattr(given.client.store, "paused", fail)
    return asked
