"""Many callers, few commits; and one caller's error is nobody else's."""

import asyncio
import threading
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TypeVar

import pytest

from tests.stores.sqlite.conftest import Disk
from windlass import ClaimLost, Client, NewJob, StoreFull, Unique, UniqueConflict
from windlass.core.failpoint import arm, disarm
from windlass.testing.conformance.given import a_job
from windlass.testing.failpoints import Faulted

T = TypeVar("T")


@pytest.fixture(autouse=True)
def by_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that is held back must not hold back the event loop."""
    monkeypatch.setattr("windlass.stores.sqlite.writer.QUICK", 0)


class Commits:
    """Counts commits, and holds the first one back until all callers are waiting."""

    def __init__(self) -> None:
        self.count = 0
        self._held = threading.Event()
        self._reached = threading.Event()
        arm("sqlite.before_commit", self.hold)
        arm("sqlite.after_commit", self._counted)

    async def together(self, client: Client, calls: Sequence[Awaitable[T]]) -> list[T | BaseException]:
        """Let all calls gather behind one commit, and return what each was answered."""
        first = asyncio.create_task(client.kv.put("first", b""))
        await asyncio.to_thread(self._reached.wait, 10)
        rest = asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self._held.set()
        await first
        return await rest

    def hold(self) -> None:
        self._reached.set()
        self._held.wait(10)

    def _counted(self) -> None:
        self.count += 1


async def test_what_gathers_during_a_commit_shares_the_next(client: Client) -> None:
    commits = Commits()

    answers = await commits.together(client, [client.enqueue("email", b"%d" % n) for n in range(64)])

    assert commits.count == 2
    assert not [answer for answer in answers if isinstance(answer, BaseException)]
    assert (await client.stats("email")).pending == 64


async def test_a_repeat_that_shares_the_commit_of_its_first_call_gets_the_same_answer(client: Client) -> None:
    commits, store = Commits(), client.store
    plain, unnamed, twice, keyed = a_job(), a_job(), a_job(), a_job(unique=Unique("k"))

    answers = await commits.together(
        client,
        [
            store.enqueue([plain], request_id="plain"),
            store.enqueue([unnamed]),
            store.enqueue([a_job()], request_id="plain"),
            store.enqueue([keyed], request_id="keyed"),
            store.enqueue([a_job()], request_id="keyed"),
            store.enqueue([twice, twice], request_id="twice"),
        ],
    )

    made, kept = [(plain.id, True)], [(keyed.id, True)]
    assert answers == [made, [(unnamed.id, True)], made, kept, kept, [(twice.id, True), (twice.id, False)]]
    assert commits.count == 1
    assert (await client.stats("default")).pending == 4


async def test_a_lone_call_waits_for_no_other(client: Client) -> None:
    commits = Commits()

    await commits.together(client, [])
    await client.enqueue("email")

    assert commits.count == 2


async def test_calls_of_all_kinds_share_a_commit(client: Client) -> None:
    await client.enqueue_many([NewJob("email") for _ in range(2)])
    first, second = await client.claim_many("email", limit=2)
    commits = Commits()

    calls: list[Awaitable[object]] = [
        client.ack(first),
        client.nack(second, "again", delay=0),
        client.enqueue("other"),
        client.claim("other"),
        client.kv.put("key", b"value"),
        client.pause("third"),
    ]
    answers = await commits.together(client, calls)

    assert commits.count == 2
    assert not [answer for answer in answers if isinstance(answer, BaseException)]


async def test_a_refused_call_is_refused_alone(client: Client) -> None:
    unique = Unique("key", on_conflict="raise")
    await client.enqueue("email", unique=unique)
    await client.enqueue("lost")
    claim = await client.claim("lost", lease=0)
    assert claim is not None
    await client.rescue()
    commits = Commits()

    calls: list[Awaitable[object]] = [
        client.enqueue("email", b"before"),
        client.enqueue_many([NewJob("email", b"refused"), NewJob("email", b"refused", unique=unique)]),
        client.ack(claim),
        client.enqueue("email", b"after"),
    ]
    answers = await commits.together(client, calls)

    assert commits.count == 2
    assert [type(answer) for answer in answers if isinstance(answer, BaseException)] == [UniqueConflict, ClaimLost]
    payloads = [job.payload for job in await client.jobs() if job.queue == "email"]
    assert payloads == [b"", b"before", b"after"]


async def test_a_call_that_finds_no_room_fails_alone(disk: Disk, client: Client) -> None:
    commits = Commits()

    with disk.full(but_for=8):
        calls = [client.enqueue("email", b"x" * (900_000 if n == 7 else 1)) for n in range(16)]
        answers = await commits.together(client, calls)

    assert [n for n, answer in enumerate(answers) if isinstance(answer, BaseException)] == [7]
    assert isinstance(answers[7], StoreFull)
    assert (await client.stats("email")).pending == 15


async def test_a_commit_that_fails_as_a_whole_is_tried_call_by_call(client: Client) -> None:
    commits = Commits()
    failures = iter([Faulted("the shared commit")])

    def fail_once() -> None:
        commits.hold()
        if commits.count == 1:
            with suppress(StopIteration):
                raise next(failures)

    arm("sqlite.before_commit", fail_once)
    answers = await commits.together(client, [client.enqueue("email") for _ in range(8)])

    assert commits.count == 1 + 8
    assert not [answer for answer in answers if isinstance(answer, BaseException)]
    assert (await client.stats("email")).pending == 8


async def test_the_writer_lives_on_after_an_error(client: Client) -> None:
    def fail() -> None:
        message = "here"
        raise Faulted(message)

    arm("sqlite.before_commit", fail)
    with pytest.raises(Faulted):
        await client.enqueue("email", b"refused")
    disarm()

    await client.enqueue("email", b"kept")

    assert [job.payload for job in await client.jobs()] == [b"kept"]
    assert (await client.stats("email")).pending == 1


@pytest.mark.slow
async def test_ten_thousand_jobs_are_an_ordinary_batch(client: Client) -> None:
    commits = Commits()
    await commits.together(client, [])

    done = await client.enqueue_many([NewJob("email", b"%d" % n) for n in range(10_000)])
    claims = await client.claim_many("email", limit=10_000)
    await asyncio.gather(*(client.ack(claim) for claim in claims))

    assert [claim.job.id for claim in claims] == [each.id for each in done]
    assert (await client.stats("email")).succeeded == 10_000
    assert commits.count < 20
