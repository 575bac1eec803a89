import json
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cli.serving import PATIENCE, Served
from tests.http.given_app import LIMITED, GivenApp, an_app, until
from tests.http.streams import Stream, a_stream, time_passes
from windlass.api.roles import Role
from windlass.core.errors import StoreUnavailable
from windlass.http import streaming
from windlass.http.following import LOOK_EVERY
from windlass.testing import FakeClock
from windlass.testing.clock import START


async def _claimed(given: GivenApp, queue: str = "mine") -> tuple[str, dict[str, str]]:
    """Return the id of a job that runs, and what proves that it is held."""
    [claim] = await given.claimed(queue)
    job_id = claim["job"]["id"]
    return job_id, {"id": job_id, "token": claim["token"]}


async def _note(given: GivenApp, held: dict[str, str], *texts: str, done: float | None = None) -> None:
    progress = {} if done is None else {"progress": {"done": done}}
    lines = [{"level": "info", "text": text} for text in texts]
    assert await given.done("/claims/note", {"notes": [{**held, "lines": lines, **progress}]}) == {"written": [True]}


async def _next(clock: FakeClock, stream: Stream) -> Any:  # noqa: ANN401 - the JSON edge
    await time_passes(clock, stream, LOOK_EVERY)
    told = await stream.parts.get()
    assert told.startswith(b"data: "), told
    assert told.endswith(b"\n\n")
    return json.loads(told[6:])


def _texts(told: Any) -> list[str]:  # noqa: ANN401 - the JSON edge
    return [line["text"] for line in told.get("lines", ())]


async def test_a_log_is_told_from_its_beginning_to_the_end_of_its_job() -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given:
        job, held = await _claimed(given)
        await _note(given, held, "one", done=1)
        async with a_stream(given, f"/jobs/{job}/log") as stream:
            assert await stream.parts.get() == b": ok\n\n"
            first = await _next(clock, stream)
            await _note(given, held, "two", "three", done=2)
            second = await _next(clock, stream)
            await _note(given, held, "four")
            await given.done("/claims/settle", {"settlements": [{"do": "ack", **held}]})
            third = await _next(clock, stream)
            await stream.ended.wait()

        at = START.isoformat().replace("+00:00", "Z")
        assert first == {
            "state": "running",
            "delivery": 1,
            "progress": {"done": 1.0},
            "lines": [{"at": at, "level": "info", "text": "one", "delivery": 1}],
        }
        assert (_texts(second), second["progress"]) == (["two", "three"], {"done": 2.0})
        assert (third["state"], _texts(third), third["ended"]) == ("succeeded", ["four"], True)
        assert stream.headers[b"content-type"] == b"text/event-stream; charset=utf-8"


async def test_a_job_that_has_ended_is_told_at_once() -> None:
    async with an_app() as given:
        [job] = await given.enqueued("mine")
        await given.done("/jobs/cancel", {"ids": [job]})
        reply = await given.get(f"/jobs/{job}/log", who=Role.PRODUCE)

    assert reply.body == b': ok\n\ndata: {"state":"cancelled","ended":true}\n\n'


async def test_a_job_whose_record_is_gone_has_ended() -> None:
    clock = FakeClock()
    async with an_app(clock=clock, keep_succeeded=0) as given:
        job, held = await _claimed(given)
        async with a_stream(given, f"/jobs/{job}/log") as stream:
            await stream.parts.get()
            await _next(clock, stream)
            await given.done("/claims/settle", {"settlements": [{"do": "ack", **held}]})
            last = await _next(clock, stream)
            await stream.ended.wait()

    assert last == {"state": None, "ended": True}


async def test_a_slow_reader_gets_all_lines_together() -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given:
        job, held = await _claimed(given)
        async with a_stream(given, f"/jobs/{job}/log") as stream:
            await until(stream.parts.full)
            for n in range(5):
                await _note(given, held, f"line {n}")
                await clock.let_pass(LOOK_EVERY)
            await stream.parts.get()
            told = [await _next(clock, stream), await _next(clock, stream)]

    # the first event was on its way when the lines came
    assert [_texts(each) for each in told] == [[], [f"line {n}" for n in range(5)]]


async def test_a_job_is_looked_at_as_often_however_many_read(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given:
        job, held = await _claimed(given)
        target = f"/jobs/{job}/log"
        async with a_stream(given, target) as one, a_stream(given, target) as two, a_stream(given, target) as three:
            streams, get, looks = (one, two, three), given.client.store.get, list[object]()
            for stream in streams:
                await stream.parts.get()
                await _next(clock, stream)

            async def counted(ids: Any) -> Any:  # noqa: ANN401 - as the store's
                looks.append(ids)
                return await get(ids)

            monkeypatch.setattr(given.client.store, "get", counted)
            begun = clock.monotonic()
            await _note(given, held, "line")
            told = [await _next(clock, stream) for stream in streams]
            await clock.let_pass(10)
            most = (clock.monotonic() - begun) / LOOK_EVERY
        await clock.let_pass(1)
        after = len(looks)
        await clock.let_pass(10)

    assert [_texts(each) for each in told] == [["line"]] * 3
    assert 10 / LOOK_EVERY <= after <= most + 2
    # nobody reads any more, and nothing is looked at
    assert len(looks) == after


async def test_readers_outlast_a_store_that_is_away_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given:
        job, held = await _claimed(given)
        async with a_stream(given, f"/jobs/{job}/log") as stream:
            await stream.parts.get()
            await _next(clock, stream)
            with monkeypatch.context() as patch:
                patch.setattr(given.client.store, "get", _away(retryable=True))
                await clock.let_pass(3)
            await _note(given, held, "still there")
            told = await _next(clock, stream)
            monkeypatch.setattr(given.client.store, "get", _away(retryable=False))
            await time_passes(clock, stream, LOOK_EVERY)

            # it does not come back: nobody waits for it, and the job has not ended
            assert stream.ended.is_set()
            assert stream.parts.empty()

    assert _texts(told) == ["still there"]


def _away(*, retryable: bool) -> Any:  # noqa: ANN401 - in place of a method
    async def get(ids: object) -> None:
        del ids
        message = "the store is away"
        raise StoreUnavailable(message, retryable=retryable)

    return get


async def test_a_log_is_not_told_to_whoever_is_limited_to_other_queues() -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given:
        [theirs] = await given.enqueued("theirs")
        refused = await given.get(f"/jobs/{theirs}/log", who=LIMITED)
        [mine] = await given.enqueued("mine")
        async with a_stream(given, f"/jobs/{mine}/log", LIMITED) as stream:
            await stream.parts.get()
            first = await _next(clock, stream)
            # the same id is a job of another queue now
            await given.done("/jobs/cancel", {"ids": [mine]})
            await given.done("/jobs/delete", {"ids": [mine]})
            await given.done("/jobs", {"jobs": [{"id": mine, "queue": "theirs"}]})
            last = await _next(clock, stream)

    assert (refused.status, refused.error) == (404, "job_not_found")
    assert (first["state"], last) == ("pending", {"state": None, "ended": True})


async def test_streams_of_logs_obey_the_limit_and_end_with_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "MOST_STREAMS", 1)
    async with an_app() as given:
        [job] = await given.enqueued("mine")
        async with a_stream(given, f"/jobs/{job}/log") as stream:
            await stream.parts.get()
            await stream.parts.get()
            more = [await given.get(f"/jobs/{job}/log"), await given.get("/news?topic=ends")]
            given.api.stop_waiting()
            await stream.ended.wait()

        assert [(reply.status, reply.header("retry-after")) for reply in more] == [(503, "1")] * 2


async def test_a_log_that_cannot_be_told_is_refused() -> None:
    async with an_app() as given:
        unknown = await given.get("/jobs/0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d/log")
        odd = await given.get("/jobs/0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d/log?follow=1")

    assert (unknown.status, unknown.error, odd.status) == (404, "job_not_found", 422)


@pytest.mark.slow
def test_a_line_comes_from_a_served_process_while_its_job_runs(tmp_path: Path) -> None:
    with Served(tmp_path, "sqlite:///jobs.db?synchronous=normal") as served:
        [made] = served.call("/api/v1/jobs", {"jobs": [{"queue": "q"}]})["jobs"]
        [claim] = served.call("/api/v1/claims", {"queues": ["q"]})["claims"]
        held = {"id": made["id"], "token": claim["token"]}
        request = urllib.request.Request(f"{served.url}/api/v1/jobs/{made['id']}/log")  # noqa: S310 - of that process
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:  # noqa: S310 - as above
            first = [reply.readline() for _ in range(4)]
            served.call("/api/v1/claims/note", {"notes": [{**held, "lines": [{"level": "info", "text": "half"}]}]})
            line = reply.readline()
            stopping = threading.Thread(target=served.stop)
            stopping.start()
            rest = reply.read()
            stopping.join(PATIENCE)

    assert first[:2] == [b": ok\n", b"\n"]
    assert json.loads(first[2][6:]) == {"state": "running", "delivery": 1}
    assert _texts(json.loads(line[6:])) == ["half"]
    assert rest == b"\n"
