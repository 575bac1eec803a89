"""Settlements that share a commit: what is in the way of one of them is nothing to the others (SPEC 2.5)."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import asyncpg
import pytest

import windlass
from tests.postgres.cluster import schema_of
from tests.stores.postgres.racing import connection_to, settlement
from windlass import App, Claim, Client, Context, NewJob, Server, State, StoreUnavailable, Unique
from windlass.app.handle import Handle
from windlass.app.handler import AsyncHandler
from windlass.core.job import Failure, Note, Progress
from windlass.core.requests import Settled, SettleResult
from windlass.core.verdict import ToDead, ToSucceeded

DEADLINE: Final = 2.0
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""
DEAD: Final = ToDead(Failure("no such user"))


@pytest.fixture
async def client(schema: str) -> AsyncIterator[Client]:
    async with windlass.connect(f"{schema}&timeout={DEADLINE}", keep_succeeded=None, keep_dead=None) as client:
        yield client


async def claims(client: Client, count: int) -> list[Claim]:
    await client.enqueue_many([NewJob("q", b"") for _ in range(count)])
    return await client.claim_many(["q"], limit=count, lease=60)


async def lock(somebody: "asyncpg.Connection[Any]", claim: Claim, how: str = "for update") -> None:
    assert await somebody.fetch(f"select 1 from windlass_job where id = $1 {how}", claim.job.id)


async def refuse(somebody: "asyncpg.Connection[Any]", schema: str, job_id: str) -> None:
    """Have every end of one job refused by the database."""
    await somebody.execute(
        f"""
        create function {schema_of(schema)}.refuse() returns trigger language plpgsql
        as $$ begin raise exception 'never this one' using errcode = '23514'; end $$;
        create trigger refuse before update on windlass_job for each row
        when (old.id = '{job_id}' and new.state <> 'running') execute function {schema_of(schema)}.refuse();
        """
    )


@dataclass(frozen=True, slots=True)
class AtWork:
    """A server with a slow job that it has claimed, and that goes on when it is let go."""

    slow: Handle[None]
    let_go: asyncio.Event
    quick: AsyncHandler[[], None]

    async def go_on(self) -> None:
        """Return when the server has done some other jobs, one after the other."""
        for _ in range(5):
            await (await self.quick.enqueue()).wait(timeout=10)


@asynccontextmanager
async def at_work(schema: str) -> AsyncGenerator[AtWork]:
    app = App(schema)
    claimed, let_go = asyncio.Event(), asyncio.Event()

    @app.job
    async def slow(ctx: Context) -> None:
        ctx.progress(1)
        claimed.set()
        await let_go.wait()

    @app.job
    async def quick() -> None:
        pass

    async with app:
        handle = await slow.enqueue()
        async with Server(app):
            await claimed.wait()
            yield AtWork(handle, let_go, quick)


def are_locked_out(answers: list[SettleResult]) -> bool:
    return all(isinstance(answer, StoreUnavailable) and answer.retryable for answer in answers)


@pytest.mark.parametrize("keep", [None, 0], ids=["kept", "forgotten"])
async def test_a_job_that_is_locked_keeps_only_its_own_caller_waiting(schema: str, keep: int | None) -> None:
    async with (
        windlass.connect(f"{schema}&timeout={DEADLINE}", keep_succeeded=keep) as client,
        connection_to(schema) as somebody,
        somebody.transaction(),
    ):
        first, held, *others = await claims(client, 6)
        await lock(somebody, held)
        began = time.monotonic()
        waiting = asyncio.create_task(client.ack(held))
        await asyncio.gather(client.ack(first), *(client.ack(one) for one in others[1:]))
        # whoever comes while that one waits is not held up either
        await client.ack(others[0])
        quick = time.monotonic() - began
        assert not waiting.done()
        with pytest.raises(StoreUnavailable, match=f"job {held.job.id} was not settled") as raised:
            await waiting
        ended = time.monotonic() - began

        assert raised.value.retryable
        assert quick < DEADLINE / 2
        assert ended < DEADLINE + SPARE
        assert (await client.stats("q")).running == 1


async def test_who_waits_for_a_job_settles_it_when_it_is_free(client: Client, schema: str) -> None:
    held, other = await claims(client, 2)
    async with connection_to(schema) as somebody:
        async with somebody.transaction():
            await lock(somebody, held)
            waiting = asyncio.create_task(client.ack(held))
            await client.ack(other)
        await waiting

    assert (await client.stats("q")).succeeded == 2


async def test_those_that_wait_for_a_job_keep_no_connection(schema: str) -> None:
    async with (
        windlass.connect(f"{schema}&timeout={DEADLINE}&connections=1") as client,
        connection_to(schema) as somebody,
        somebody.transaction(),
    ):
        held = await claims(client, 3)
        await lock(somebody, held[0])
        waiting = asyncio.create_task(client.ack(held[0]))
        await client.ack(held[1])
        await client.nack(held[2], "boom")

        assert not waiting.done()
        with pytest.raises(StoreUnavailable):
            await waiting


@pytest.mark.parametrize("verdict", [ToSucceeded(), DEAD], ids=["plain", "not plain"])
@pytest.mark.parametrize("how", ["for update", "for key share"])
async def test_one_call_for_many_is_answered_for_those_that_are_locked_alone(
    client: Client, schema: str, verdict: ToSucceeded | ToDead, how: str
) -> None:
    # a transaction that has fenced its job is in the way of no end but that of the record
    keep = how == "for update"
    async with connection_to(schema) as somebody, somebody.transaction():
        made = await claims(client, 4)
        await lock(somebody, made[1], how)
        began = time.monotonic()

        answers = await client.store.settle([settlement(one, verdict, keep=keep) for one in made])

        assert time.monotonic() - began < DEADLINE / 2
    assert are_locked_out([answers.pop(1)])
    assert answers == [Settled.DONE] * 3
    assert (await client.stats("q")).running == 1


async def test_a_key_that_is_being_taken_is_in_the_way_of_its_own_settlement_alone(client: Client, schema: str) -> None:
    async with connection_to(schema) as somebody, somebody.transaction():
        made = await claims(client, 4)
        await client.enqueue("next", b"", unique="k", connection=somebody)
        follower = client.preparer.prepare([NewJob("next", b"", unique=Unique("k"))])
        settlements = [settlement(one) for one in made]
        settlements[2] = settlement(made[2], then=follower)

        answers = await client.store.settle(settlements)

    assert are_locked_out([answers.pop(2)])
    assert answers == [Settled.DONE] * 3


async def test_answers_that_were_given_in_parts_are_given_again(client: Client, schema: str) -> None:
    async with connection_to(schema) as somebody:
        made = await claims(client, 3)
        settlements = [settlement(one, keep=False) for one in made]
        async with somebody.transaction():
            await lock(somebody, made[0])
            first = await client.store.settle(settlements, request_id="r")
        again = await client.store.settle(settlements, request_id="r")

    assert are_locked_out([first[0], again[0]])
    assert first[1:] == again[1:] == [Settled.DONE] * 2


async def test_what_the_database_refuses_is_refused_to_its_own_caller_alone(client: Client, schema: str) -> None:
    async with connection_to(schema) as somebody:
        made = await claims(client, 5)
        await refuse(somebody, schema, made[2].job.id)

        ends = await asyncio.gather(*(client.ack(one) for one in made), return_exceptions=True)

    refused = ends.pop(2)
    assert isinstance(refused, StoreUnavailable)
    assert "never this one" in str(refused)
    assert not refused.retryable
    assert ends == [None] * 4


@pytest.mark.parametrize("verdict", [ToSucceeded(), DEAD], ids=["plain", "not plain"])
async def test_one_call_for_many_is_answered_for_the_refused_one_alone(
    client: Client, schema: str, verdict: ToSucceeded | ToDead
) -> None:
    async with connection_to(schema) as somebody:
        made = await claims(client, 5)
        await refuse(somebody, schema, made[2].job.id)
        settlements = [settlement(one, verdict) for one in made]

        answers = await client.store.settle(settlements, request_id="r")
        again = await client.store.settle(settlements, request_id="r")

    for told in (answers, again):
        refused = told.pop(2)
        assert isinstance(refused, StoreUnavailable)
        assert not refused.retryable
        assert told == [Settled.DONE] * 4


async def test_what_is_in_the_way_of_all_is_raised(client: Client, schema: str) -> None:
    async with connection_to(schema) as somebody:
        made = await claims(client, 3)
        await somebody.execute("alter table windlass_receipt rename to elsewhere")

        with pytest.raises(StoreUnavailable):
            await client.store.settle([settlement(one) for one in made])

    assert (await client.stats("q")).running == 3


async def test_a_note_to_a_locked_job_waits_for_nobody(client: Client, schema: str) -> None:
    async with connection_to(schema) as somebody:
        made = await claims(client, 2)
        notes = [Note(one.job.id, one.token, Progress(1)) for one in made]
        async with somebody.transaction():
            await lock(somebody, made[0])
            began = time.monotonic()
            written = await client.store.note(notes)
            assert time.monotonic() - began < DEADLINE / 2
        later = await client.store.note(notes)

    assert list(written) == [None, True]
    assert list(later) == [True, True]


async def test_a_server_goes_on_beside_a_job_that_stays_locked(client: Client, schema: str) -> None:
    async with at_work(schema) as work, connection_to(schema) as somebody:
        async with somebody.transaction():
            await somebody.execute("select 1 from windlass_job where id = $1 for update", work.slow.id)
            work.let_go.set()
            began = time.monotonic()
            await work.go_on()
            assert time.monotonic() - began < SPARE
        await work.slow.wait(timeout=30)

    job = await client.get(work.slow.id)
    assert job is not None
    assert job.state is State.SUCCEEDED


@pytest.mark.usefixtures("client")
async def test_a_server_goes_on_beside_a_job_whose_end_is_refused(
    schema: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with at_work(schema) as work, connection_to(schema) as somebody:
        await refuse(somebody, schema, work.slow.id)
        work.let_go.set()
        await work.go_on()

    assert re.search(f"the end of job {work.slow.id} .* by succeeded is refused", caplog.text)
    assert "could not be written before the stop" not in caplog.text
