"""Large payloads are read beside the event loop, and no caller takes the memory or the thread of others."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import pytest
from starlette.types import Message

from tests.http.asgi import Reply
from tests.http.dashboard.given_dashboard import a_dashboard
from tests.http.given_app import GivenApp, an_app, secret_of, until
from tests.http.given_tokens import bearer
from windlass import NewJob
from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.http import payload_reading
from windlass.http.payload_reading import IN_FLIGHT, LARGEST_PAGE, PIECE, PayloadReading
from windlass.system import SystemClock
from windlass.testing.conformance.fixtures import soon

LARGE = {"rows": [{"id": n, "monkey": f"row {n}", "password": "canary"} for n in range(2_000)]}
"""About 90 kB."""
SMALL = {"id": 1, "password": "canary"}


@contextmanager
def _run_here() -> Generator[set[tuple[str, str]]]:
    """Give the functions that run in this thread, which is that of the event loop, by file and name."""
    run: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        del event, argument
        run.add((frame.f_code.co_filename, frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield run
    finally:
        sys.setprofile(before)


def _masked(run: set[tuple[str, str]]) -> bool:
    return any(file.endswith("config/hidden.py") and name == "of" for file, name in run)


async def _filled(client: Client, payload: object, count: int = 1) -> str:
    made = await client.enqueue_many([NewJob("mine", payload) for _ in range(count)])
    return made[0].id


PATHS: dict[str, Callable[[GivenApp, str], Any]] = {
    "one": lambda given, job: given.get(f"/jobs/{job}", who=Role.VIEW),
    "jobs": lambda given, _: given.get("/jobs", who=Role.VIEW),
    "newest": lambda given, _: given.get("/jobs/newest", who=Role.VIEW),
    "get": lambda given, job: given.post("/jobs/get", {"ids": [job]}, who=Role.VIEW),
    "search": lambda given, _: given.get("/jobs?payload_text=nowhere", who=Role.VIEW),
    "newest search": lambda given, _: given.get("/jobs/newest?payload_text=nowhere", who=Role.VIEW),
    "schedules": lambda given, _: given.post("/schedules/get", {}, who=Role.VIEW),
}


@pytest.mark.parametrize("way", PATHS)
@pytest.mark.parametrize("payload, here", [(LARGE, False), (SMALL, True)], ids=["large", "small"])
async def test_large_payloads_are_masked_in_another_thread_than_that_of_the_loop(
    way: str, payload: object, *, here: bool
) -> None:
    async with an_app() as given:
        job = await _filled(given.client, payload)
        await given.client.schedules.put("s", "every 3600s", NewJob("mine", payload))
        with _run_here() as run:
            reply: Reply = await PATHS[way](given, job)

    assert reply.status == 200, reply.body
    assert b"canary" not in reply.body
    assert _masked(run) is here


@pytest.mark.parametrize("path", ["/jobs/{job}", "/jobs?text=nowhere", "/schedules?id=s"])
@pytest.mark.parametrize("payload, here", [(LARGE, False), (SMALL, True)], ids=["large", "small"])
async def test_so_they_are_for_the_pages_of_the_dashboard(path: str, payload: object, *, here: bool) -> None:
    async with a_dashboard() as given:
        job = await _filled(given.client, payload)
        await given.client.schedules.put("s", "every 3600s", NewJob("mine", payload))
        with _run_here() as run:
            reply = await given.get(path.format(job=job), who=Role.VIEW)

    assert reply.status == 200, reply.body
    assert b"canary" not in reply.body
    assert _masked(run) is here


@pytest.mark.parametrize("payload, here", [(LARGE, False), (SMALL, True)], ids=["large", "small"])
async def test_payloads_of_dead_jobs_are_masked_as_those_of_others(payload: object, *, here: bool) -> None:
    async with an_app() as given:
        await _filled(given.client, payload, count=2)
        for claim in await given.client.claim_many("mine", limit=2):
            await given.client.dead_letter(claim, "no")
        with _run_here() as run:
            reply = await given.get("/jobs/dead", who=Role.VIEW)

    assert (reply.status, len(reply.document["jobs"])) == (200, 2)
    assert b"canary" not in reply.body
    assert _masked(run) is here


async def test_large_results_are_masked_there_too() -> None:
    async with an_app() as given:
        job = await _filled(given.client, SMALL)
        claim = await given.client.claim("mine")
        assert claim is not None
        await given.client.ack(claim, LARGE)
        with _run_here() as run:
            reply = await given.get(f"/jobs/{job}/wait", who=Role.VIEW)

    assert reply.document["outcome"] == "completed"
    assert b"canary" not in reply.body
    assert not _masked(run)


@asynccontextmanager
async def _turns_of_the_loop() -> AsyncGenerator[list[int]]:
    """Count how often the loop comes round while something is done."""
    turns = [0]

    async def count() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    try:
        yield turns
    finally:
        counting.cancel()


@pytest.mark.parametrize("who", [Role.VIEW, Role.ADMIN])
@pytest.mark.parametrize("path", ["/jobs?", "/jobs/newest?"])
async def test_a_search_that_finds_nothing_lets_others_be_answered(path: str, who: Role) -> None:
    async with an_app() as given:
        await _filled(given.client, {"text": "lorem ipsum " * 40_000}, count=100)
        async with _turns_of_the_loop() as turns:
            reply = await given.get(f"{path}payload_text=nowhere&limit=1", who=who)

    # 48 MB, of which no turn looks at more than a few
    assert reply.document["jobs"] == []
    assert turns[0] >= 10


class _Slow:
    """Takes the head of a reply, and nothing more until it is let."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()
        self.status = 0
        self.size = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.size += len(message["body"])
        await self.goes_on.wait()


async def _reads(given: GivenApp, who: str, slow: _Slow) -> None:
    name, value = bearer(secret_of(who))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api/v1/jobs",
        "raw_path": b"/api/v1/jobs",
        "query_string": b"limit=32",
        "root_path": "",
        "headers": [(b"host", b"localhost"), (name.encode(), value.encode())],
        "client": ("203.0.113.5", 1),
        "server": ("localhost", 80),
    }

    async def receive() -> Message:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    await given.api(scope, receive, slow.send)


async def test_a_caller_whose_readers_take_nothing_holds_a_bounded_part_and_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(payload_reading, "WAIT", 1_000.0)
    async with an_app() as given:
        await _filled(given.client, {"text": "lorem ipsum " * 40_000}, count=32)
        readers = [_Slow() for _ in range(6)]
        reading = [asyncio.create_task(_reads(given, Role.VIEW, each)) for each in readers]
        await until(lambda: sum(each.size > 0 for each in readers) == IN_FLIGHT // LARGEST_PAGE)
        held = given.api.shared.reading.held(Role.VIEW)

        other = await soon(given.get("/jobs?limit=32", who=Role.WORK))

        assert other.status == 200
        assert 0 < held <= IN_FLIGHT
        assert sum(each.status == 200 for each in readers) == IN_FLIGHT // LARGEST_PAGE
        for each in readers:
            each.goes_on.set()
        await soon(asyncio.gather(*reading))
        assert [each.status for each in readers] == [200] * len(readers)
        assert given.api.shared.reading.held(Role.VIEW) == 0


async def test_whoever_waits_too_long_or_behind_too_many_is_told_when_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(payload_reading, "WAIT", 0.01)
    monkeypatch.setattr(payload_reading, "MOST_WAITING", 1)
    async with an_app() as given:
        await _filled(given.client, {"text": "lorem ipsum " * 40_000}, count=32)
        readers = [_Slow() for _ in range(IN_FLIGHT // LARGEST_PAGE)]
        reading = [asyncio.create_task(_reads(given, Role.VIEW, each)) for each in readers]
        await until(lambda: all(each.size for each in readers))

        late, later = await soon(asyncio.gather(*(given.get("/jobs", who=Role.VIEW) for _ in range(2))))

        assert (late.status, later.status) == (429, 429)
        assert late.header("retry-after") == "1"
        assert late.document["facts"] == {"retryable": True}
        for each in readers:
            each.goes_on.set()
        await soon(asyncio.gather(*reading))
        assert (await soon(given.get("/jobs?limit=1", who=Role.VIEW))).status == 200


async def test_a_caller_who_reads_little_is_let_in_more_often() -> None:
    readings = PayloadReading(SystemClock())
    for _ in range(20):
        reading = readings.of("ada")
        await reading.begin()
        reading.took(100)
        reading.done_reading()
        reading.end()
    many = [readings.of("ada") for _ in range(500)]

    for each in many:
        await soon(each.begin())

    assert readings.held("ada") <= IN_FLIGHT
    for each in many:
        each.end()
    assert readings.held("ada") == 0


async def test_who_gives_up_waiting_leaves_its_place_to_the_next() -> None:
    readings = PayloadReading(SystemClock())
    first, second, third = (readings.of("ada") for _ in range(3))
    await first.begin(IN_FLIGHT)
    giving_up = asyncio.create_task(second.begin(IN_FLIGHT))
    waiting = asyncio.create_task(third.begin(IN_FLIGHT))
    await asyncio.sleep(0)

    giving_up.cancel()
    await asyncio.wait([giving_up])
    first.end()

    await soon(waiting)
    second.end()
    assert readings.held("ada") == IN_FLIGHT
    third.end()
    assert readings.held("ada") == 0


async def test_callers_take_turns_in_the_thread() -> None:
    readings = PayloadReading(SystemClock())
    done: list[str] = []

    async def work(name: str, pieces: int) -> None:
        reading = readings.of(name)
        await reading.each(range(pieces), lambda _: PIECE, lambda _: done.append(name))
        reading.end()

    await soon(asyncio.gather(*(work("many", 20) for _ in range(20)), work("one", 1)))

    # of its four hundred pieces one at a time is in line
    assert done.index("one") < 10
    readings.close()
