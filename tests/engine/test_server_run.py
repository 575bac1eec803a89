import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from windlass import App, Job, NotAtomicHere, Server, ServerConfig, State
from windlass.core.ids import JobId
from windlass.core.requests import ClaimRequest, Settlement
from windlass.core.store import Features
from windlass.core.verdict import ToSucceeded
from windlass.stores.memory import MemoryStore
from windlass.system import SystemClock, SystemRng
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.fixtures import soon


@pytest.mark.parametrize("processes, told", [(1, 0), (2, 1)])
async def test_a_server_in_a_program_tells_that_it_is_one_process(
    processes: int, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with App("memory://") as app, Server(app, ServerConfig(processes=processes)):
        pass

    lines = [record.getMessage() for record in caplog.records if "has an effect under" in record.getMessage()]
    assert len(lines) == told
    assert all("processes=2 has an effect under `windlass worker` alone" in line for line in lines)


class Spread(MemoryStore):
    """One whose calls are about one queue each."""

    @property
    def features(self) -> Features:
        return replace(super().features, atomic_across_queues=False)


@pytest.fixture
def app() -> App:
    app = App(Spread(clock=SystemClock(), rng=SystemRng()))

    @app.job
    async def work() -> int:
        return 7

    return app


async def test_what_a_store_cannot_do_over_several_queues_is_refused_at_the_start(app: App) -> None:
    async with app:
        server = Server(app, ServerConfig(queues=["default", "b"], order="priority"))
        with pytest.raises(NotAtomicHere, match=r"order='priority' over 2 queues .* use order='weighted' or 'strict'"):
            await server.start()

        assert not server.running
        assert await app.client.store.servers() == []


@pytest.mark.parametrize(
    "config",
    [
        ServerConfig(queues=["default"], order="priority"),
        ServerConfig(queues=["default", "b"], order="strict"),
        ServerConfig(queues=["default", "b"]),
    ],
)
async def test_queues_that_are_spread_are_worked_where_none_is_compared_with_another(
    app: App, config: ServerConfig
) -> None:
    async with app, Server(app, config):
        done = await app.client.enqueue("default", {}, kind="work")

        await app.client.wait(done.id, timeout=30)
        assert (await app.client.stats()).succeeded == 1


ANY = ClaimRequest(["by-hand"], 1, timedelta(minutes=1))


class Overtaken(MemoryStore):
    """One in which a job is worked by somebody else before anybody has looked at it."""

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        await MemoryStore.settle(
            self, [Settlement(claim.job.id, claim.token, ToSucceeded()) for claim in (await self.claim(ANY)).jobs]
        )
        return await super().get(ids)


async def test_hooks_are_told_where_a_rescue_has_put_a_job_and_not_where_it_is_by_now() -> None:
    clock = FakeClock()
    app = App(Overtaken(clock=clock, rng=SeededRng()), clock=clock, rng=SeededRng())
    told = asyncio.Queue[tuple[State, State, State]]()

    @app.on_state_change
    def note(job: Job, old: State, new: State) -> None:
        told.put_nowait((job.state, old, new))

    async with app:
        await app.client.enqueue("by-hand", b"")
        await app.client.claim("by-hand", lease=0)
        async with Server(app, ServerConfig(concurrency=0)):
            assert await soon(told.get()) == (State.PENDING, State.RUNNING, State.PENDING)
