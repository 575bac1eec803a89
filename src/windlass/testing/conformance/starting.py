"""A server starts and stops: once, again, by many at once, and with nothing left behind when it fails."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from windlass.app.app import App
from windlass.core.errors import AlreadyRunning, InvalidValue, StoreUnavailable
from windlass.core.store import Store
from windlass.engine.config import ServerConfig
from windlass.engine.server import Server
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.served import FailingStore, serving, working


class Pool:
    """What a lifespan gives."""


async def test_a_server_tells_whether_it_runs(app: App) -> None:
    server = Server(app, ServerConfig(concurrency=2, schedules=False))
    before = server.running

    await server.start()
    meanwhile, ready = server.running, server.health().ready
    await server.stop()

    assert (before, meanwhile, ready, server.running) == (False, True, True, False)
    assert server.health().reasons == ("the server does not run",)


async def test_a_server_is_made_without_a_connection_and_has_an_id(app: App) -> None:
    server = Server(app)

    assert server.id.startswith("windlass#")
    assert server.id == server.id
    assert not server.running


async def test_a_stop_is_told(app: App) -> None:
    server = Server(app)
    await server.start()
    before = server.stopping

    await server.stop()

    assert (before, server.stopping) == (False, True)


async def test_a_server_is_new_at_every_start_and_takes_itself_out_at_its_stop(app: App, store: Store) -> None:
    @app.job(queue="email")
    async def work() -> None: ...

    server = Server(app)
    ids: list[str] = []
    for _ in range(2):
        await server.start()
        [record] = await store.servers()
        ids.append(server.id)
        assert (record.id, record.name, record.queues, record.kinds) == (
            server.id,
            "windlass",
            ("default", "email"),
            ("work",),
        )
        await server.stop()
        assert await store.servers() == []

    assert ids[0] != ids[1]


async def test_a_server_works_again_after_a_restart(app: App) -> None:
    @app.job
    async def work() -> str:
        return "done"

    server = Server(app)
    for _ in range(3):
        await server.start()
        handle = await work.enqueue()
        assert await soon(handle.result()) == "done"
        await server.stop()


async def test_a_second_start_is_refused_and_changes_nothing(app: App, store: Store) -> None:
    @app.job
    async def work() -> str:
        return "done"

    async with serving(app) as server:
        known = server.id
        with pytest.raises(AlreadyRunning, match=known):
            await server.start()

        assert (server.running, server.stopping, server.id) == (True, False, known)
        assert [record.id for record in await working(store)] == [known]
        assert await soon((await work.enqueue()).result()) == "done"


async def test_starts_and_stops_by_many_at_once_leave_one_server_or_none(app: App, store: Store) -> None:
    server = Server(app)

    started = await asyncio.gather(*[server.start() for _ in range(5)], return_exceptions=True)
    assert sum(isinstance(each, AlreadyRunning) for each in started) == 4
    assert len(await store.servers()) == 1
    await asyncio.gather(*[server.stop() for _ in range(5)])

    assert not server.running
    assert await store.servers() == []


async def test_a_stop_of_a_server_that_does_not_run_is_harmless(app: App) -> None:
    server = Server(app)

    await server.stop()
    await server.start()
    await server.stop()
    await server.stop()

    assert not server.running


async def test_a_start_that_fails_halfway_leaves_nothing_behind(app: App, store: Store) -> None:
    opened: list[str] = []
    missing = True

    @app.lifespan
    async def first() -> AsyncIterator[Pool]:
        opened.append("first")
        try:
            yield Pool()
        finally:
            opened.remove("first")

    @app.lifespan
    async def second() -> AsyncIterator[None]:
        if missing:
            raise InvalidValue("no such model")
        yield None

    server = Server(app)
    with pytest.raises(InvalidValue, match="no such model"):
        await server.start()
    assert (opened, server.running, await store.servers()) == ([], False, [])

    missing = False
    await server.start()
    assert opened == ["first"]
    await server.stop()
    assert opened == []


@pytest.mark.parametrize("call", ["beat", "ended_servers", "rescue"])
async def test_a_start_without_the_store_leaves_nothing_behind(
    open_app: OpenApp, new_store: Callable[[], Store], store: Store, call: str
) -> None:
    if store.features.served and call != "beat":
        pytest.skip("a server on this store does not rescue")
    failing = FailingStore(new_store())
    app = open_app(url=failing)
    failing.failing[call] = 1
    server = Server(app)

    with pytest.raises(StoreUnavailable, match=f"no {call} today"):
        await server.start()

    assert not server.running
    assert await store.servers() == []
    await server.start()
    await server.stop()
