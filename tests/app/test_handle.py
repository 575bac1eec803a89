import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import pytest

from windlass import (
    App,
    CancelOutcome,
    Completed,
    Handle,
    JobCancelled,
    JobDead,
    JobNotFound,
    NotFound,
    ResultNotKept,
    State,
    TimedOut,
)
from windlass.testing import FakeClock


@dataclass
class Receipt:
    number: int


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def app(clock: FakeClock) -> AsyncIterator[App]:
    async with App("memory://", clock=clock) as app:
        yield app


@pytest.fixture
async def handle(app: App) -> Handle[Receipt]:
    @app.job
    async def order(item: str) -> Receipt:
        return Receipt(len(item))

    return await order.enqueue("tea")


async def ack(app: App, result: object) -> None:
    claim = await app.client.claim("default")
    assert claim is not None
    await app.client.ack(claim, result)


async def test_a_result_is_what_the_handler_returned(app: App, handle: Handle[Receipt]) -> None:
    await ack(app, Receipt(3))

    assert await handle.result(timeout=30) == Receipt(3)


async def test_a_result_is_waited_for(app: App, handle: Handle[Receipt], clock: FakeClock) -> None:
    waiting = asyncio.create_task(handle.result())
    await clock.timers(1)

    await ack(app, Receipt(3))

    assert await waiting == Receipt(3)


async def test_a_job_that_has_not_ended_in_time_is_a_timeout(handle: Handle[Receipt], clock: FakeClock) -> None:
    waiting = asyncio.create_task(handle.result(5))
    await clock.timers(2)

    clock.advance(5)

    with pytest.raises(TimeoutError, match=r"had not ended after 5 s"):
        await waiting


async def test_a_dead_job_has_no_result(app: App, handle: Handle[Receipt]) -> None:
    claim = await app.client.claim("default")
    assert claim is not None
    await app.client.dead_letter(claim, "sold out")

    with pytest.raises(JobDead, match="sold out") as caught:
        await handle.result(1)

    assert caught.value.job == await handle.job()


async def test_a_cancelled_job_has_no_result(handle: Handle[Receipt]) -> None:
    assert await handle.cancel() is CancelOutcome.REMOVED

    with pytest.raises(JobCancelled):
        await handle.result(1)


async def test_a_job_that_is_not_there_has_no_result(app: App) -> None:
    @app.job
    async def send() -> None:
        pass

    handle = send.handle(uuid4())

    with pytest.raises(JobNotFound):
        await handle.result(1)
    with pytest.raises(JobNotFound):
        await handle.job()
    assert await handle.wait(1) == NotFound()


def test_a_handle_by_id_blocks_in_code_without_an_event_loop() -> None:
    app = App("memory://")

    @app.job
    def send(to: str) -> None: ...

    enqueued = send.enqueue_sync("ada")

    handle = send.handle_sync(enqueued.id)

    assert (handle.id, handle.job().kind, handle.created) == (enqueued.id, send.kind, False)
    assert handle.cancel() is CancelOutcome.REMOVED
    app.close_sync()


async def test_a_result_whose_record_went_with_its_end_is_not_kept(clock: FakeClock) -> None:
    async with App("memory://", clock=clock, keep_succeeded=0) as app:

        @app.job
        async def send() -> None:
            pass

        handle = await send.enqueue()
        waiting = asyncio.create_task(handle.result(60))
        await clock.timers(1)
        await ack(app, None)

        with pytest.raises(ResultNotKept):
            await waiting


async def test_a_handle_waits_as_the_client_does(app: App, handle: Handle[Receipt]) -> None:
    assert await handle.wait(0) == TimedOut()
    await ack(app, Receipt(3))

    found = await handle.wait(1)

    assert isinstance(found, Completed)
    assert found.job is not None
    assert found.job.state is State.SUCCEEDED
    assert repr(handle) == f"<Handle of job {handle.id}>"
