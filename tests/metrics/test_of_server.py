import asyncio

import windlass
from tests.metrics.given import values
from windlass.metrics.exposition import registry_with, written
from windlass.metrics.of_server import ServerCollector


async def test_a_server_tells_what_it_has_done_and_what_it_does() -> None:
    app, go, begun = windlass.App("memory://"), asyncio.Event(), asyncio.Event()

    @app.job
    async def work() -> None:
        begun.set()
        await go.wait()

    @app.consumer("raw")
    async def consume(job: windlass.Job) -> None:
        assert job.payload == b"x"

    server = windlass.Server(app, windlass.ServerConfig(concurrency=7))
    registry = registry_with(ServerCollector(lambda: server))
    async with app:
        before = values(written(registry))
        async with server:
            await app.client.wait((await app.client.enqueue("raw", b"x")).id, timeout=30)
            handle = await work.enqueue()
            await begun.wait()
            during = values(written(registry))
            go.set()
            await handle.result(timeout=30)
        after = values(written(registry))

    pair = "queue=default,kind=work"
    assert (before["windlass_worker_ready"], before["windlass_worker_running"]) == (0, 0)
    assert (during["windlass_worker_ready"], during["windlass_worker_running"]) == (1, 1)
    assert during["windlass_worker_slots"] == 7
    assert during["windlass_worker_attempts_total{queue=raw,kind=(raw),outcome=succeeded}"] == 1
    assert during[f"windlass_worker_wait_seconds_count{{{pair}}}"] == 1
    assert during[f"windlass_worker_run_seconds_count{{{pair}}}"] == 0
    assert after[f"windlass_worker_attempts_total{{{pair},outcome=succeeded}}"] == 1
    assert after[f"windlass_worker_run_seconds_bucket{{{pair},le=+Inf}}"] == 1
    assert 0 < after[f"windlass_worker_run_seconds_sum{{{pair}}}"] < 30
    assert after["windlass_worker_claims_total"] == 2
    assert after["windlass_worker_leases_lost_total"] == after["windlass_worker_store_errors_total{call=claim}"] == 0
    assert after["windlass_build_info{version=" + windlass.__version__ + "}"] == 1


def test_while_there_is_no_server_it_is_not_ready() -> None:
    told = values(written(registry_with(ServerCollector(lambda: None))))

    assert (told["windlass_worker_ready"], told["windlass_worker_slots"]) == (0, 0)
    assert told["process_open_fds"] > 0
