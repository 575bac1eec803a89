import asyncio
from datetime import timedelta

import pytest

from tests.http.given_app import an_app
from windlass.api.roles import Role
from windlass.http import replies as kept_replies
from windlass.http.refusal import Refusal
from windlass.http.replies import KEPT_FOR, Replies
from windlass.http.reply import Reply
from windlass.testing import FakeClock

NAME = ("ada", "r1")
ASKED = ("unlock", b"{}")


class Work:
    """Counts how often it is done; each time it replies something else, with a status of the test's choice."""

    def __init__(self, status: int = 200, size: int = 10) -> None:
        self.times = 0
        self.status = status
        self.size = size

    async def __call__(self) -> Reply:
        self.times += 1
        return Reply(self.status, str(self.times).rjust(self.size).encode())


async def _ask(replies: Replies, work: Work, *, name: tuple[str, str] = NAME, elsewhere: bool = False) -> Reply:
    return await replies.once(name, ASKED, work, first_elsewhere=elsewhere)


@pytest.mark.parametrize("status", [200, 404, 409, 422, 500])
async def test_a_repeat_gets_the_first_reply(status: int) -> None:
    replies, work = Replies(FakeClock()), Work(status)

    assert await _ask(replies, work) == await _ask(replies, work)
    assert await _ask(replies, work, elsewhere=True) == await _ask(replies, work)
    assert work.times == 1


async def test_another_caller_with_the_same_name_is_another_one() -> None:
    replies, work = Replies(FakeClock()), Work()

    assert await _ask(replies, work) != await _ask(replies, work, name=("bob", "r1"))


async def test_what_the_store_did_not_do_is_tried_again() -> None:
    replies, work = Replies(FakeClock()), Work(503)
    await _ask(replies, work)
    work.status = 200

    assert (await _ask(replies, work)).status == 200
    assert work.times == 2


@pytest.mark.parametrize("asked", [("unlock", b"{ }"), ("lock", b"{}")])
async def test_the_same_name_for_something_else_is_refused(asked: tuple[str, bytes]) -> None:
    replies, work = Replies(FakeClock()), Work()
    await _ask(replies, work)

    with pytest.raises(Refusal) as refused:
        await replies.once(NAME, asked, work, first_elsewhere=False)

    assert refused.value.status == 422


async def test_a_repeat_joins_the_call_that_is_on_its_way() -> None:
    replies, go, times = Replies(FakeClock()), asyncio.Event(), 0

    async def work() -> Reply:
        nonlocal times
        times += 1
        await go.wait()
        return Reply(200, b"done")

    both = [asyncio.ensure_future(replies.once(NAME, ASKED, work, first_elsewhere=False)) for _ in range(2)]
    await asyncio.sleep(0)
    go.set()

    assert await asyncio.gather(*both) == [Reply(200, b"done")] * 2
    assert times == 1


async def test_of_a_call_that_was_cut_off_nobody_knows_the_outcome() -> None:
    replies, started = Replies(FakeClock()), asyncio.Event()

    async def work() -> Reply:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    first = asyncio.ensure_future(replies.once(NAME, ASKED, work, first_elsewhere=False))
    await started.wait()
    second = asyncio.ensure_future(replies.once(NAME, ASKED, work, first_elsewhere=False))
    await asyncio.sleep(0)
    first.cancel()

    for later in (second, asyncio.ensure_future(_ask(replies, Work()))):
        with pytest.raises(Refusal) as refused:
            await later
        assert (refused.value.status, refused.value.problem.error) == (409, "outcome_unknown")


async def test_a_repeat_that_another_process_was_sent_first_is_not_guessed_at() -> None:
    replies, work = Replies(FakeClock()), Work()

    with pytest.raises(Refusal) as refused:
        await _ask(replies, work, elsewhere=True)

    assert (refused.value.status, refused.value.problem.error, work.times) == (409, "outcome_unknown", 0)


async def test_replies_are_kept_for_a_time() -> None:
    clock = FakeClock()
    replies, work = Replies(clock), Work()
    await _ask(replies, work)
    clock.advance(KEPT_FOR - 1)
    await _ask(replies, work)
    clock.advance(1)
    await _ask(replies, work)

    assert (work.times, len(replies)) == (2, 1)


async def test_no_more_than_so_many_replies_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_replies, "MOST_REPLIES", 3)
    replies, work = Replies(FakeClock()), Work()
    for n in range(5):
        await _ask(replies, work, name=("ada", str(n)))

    assert (len(replies), replies.size) == (3, 30)


async def test_of_a_reply_there_was_no_room_for_only_the_name_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_replies, "MOST_BYTES", 25)
    replies, work = Replies(FakeClock()), Work()
    for n in range(3):
        await _ask(replies, work, name=("ada", str(n)))

    with pytest.raises(Refusal, match="no longer kept"):
        await _ask(replies, work, name=("ada", "0"))
    assert (replies.size, work.times) == (20, 3)


async def test_a_call_whose_reply_is_kept_is_done_once() -> None:
    async with an_app() as given:
        await given.client.store.lock("l", "me", timedelta(60))
        asked = {"name": "l", "holder": "me"}
        told = [await given.done("/locks/free", asked, who=Role.PRODUCE, request="1") for _ in range(2)]
        unnamed = await given.done("/locks/free", asked, who=Role.PRODUCE)
        own = await given.post("/locks/free", asked, request="2", serving=given.api.id)
        foreign = await given.post("/locks/free", asked, request="3", serving="0" * 32)

    assert (told, unnamed) == ([{"held": True}] * 2, {"held": False})
    assert own.document == {"held": False}
    assert (foreign.status, foreign.error) == (409, "outcome_unknown")


async def test_who_may_no_longer_ask_gets_no_kept_reply() -> None:
    async with an_app() as given:
        asked = {"name": "l", "holder": "me"}
        await given.done("/locks/free", asked, who=Role.PRODUCE, request="1")
        given.tokens.tokens = []

        assert (await given.post("/locks/free", asked, who=Role.PRODUCE, request="1")).status == 401
