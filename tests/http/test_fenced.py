"""What a serving process does when another one has taken its store over: it refuses by name, and ends."""

import asyncio
import json
import logging
import urllib.error
import urllib.request

import pytest

import windlass
from tests.engine.fenceable_store import FenceableStore
from windlass import Fenced, ServerConfig
from windlass.core.topics import FLAGS
from windlass.http.front_door import DoorOptions
from windlass.http.serving import Serving

PATIENCE = 20.0


def serving_of(store: FenceableStore) -> Serving:
    return Serving(windlass.connect(store.here), ServerConfig(), DoorOptions())


def claim(url: str, wait: float) -> tuple[int, dict[str, object]]:
    """Claim as a program in any language would; return the status and what was told."""
    body = json.dumps({"queues": ["email"], "wait": wait}).encode()
    request = urllib.request.Request(  # noqa: S310 - of this process
        f"{url}/api/v1/claims", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:  # noqa: S310 - as above
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read())


async def test_a_process_whose_store_is_taken_over_ends_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    store = FenceableStore()
    serving = serving_of(store)
    done = asyncio.ensure_future(serving.serve_until(asyncio.Event()))
    with caplog.at_level(logging.INFO):
        async with asyncio.timeout(PATIENCE):
            while "serving at" not in caplog.text:  # noqa: ASYNC110 - a log tells nobody
                await asyncio.sleep(0)

    store.take_over()

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(Fenced):
            await done
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_calls_are_refused_by_the_name_of_the_error() -> None:
    store = FenceableStore()
    async with serving_of(store) as serving:
        # nobody who would end the process hears of it
        store.take_over(ring=(FLAGS,))

        status, told = await asyncio.to_thread(claim, serving.url, 0)

    assert status == 503
    assert told["error"] == "fenced"
    assert "this one must stop" in str(told["message"])


async def test_whoever_waits_for_a_job_is_answered() -> None:
    store = FenceableStore()
    async with serving_of(store) as serving:
        waiting = asyncio.ensure_future(asyncio.to_thread(claim, serving.url, 60))
        async with asyncio.timeout(PATIENCE):
            while not store.listened("queue:email"):  # noqa: ASYNC110 - a store tells nobody
                await asyncio.sleep(0.001)

        store.take_over()

        status, told = await waiting
    assert (status, told["error"]) == (503, "fenced")
