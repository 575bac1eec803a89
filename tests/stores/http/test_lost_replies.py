"""Replies that are lost and requests that never arrive: a call is done once, and answers as the first time.

And where the serving process is another one by then, it either knows, or says that nobody does.
"""

import asyncio
from typing import Final, Literal

import pytest

from tests.stores.http.served import Bench, benched
from tests.stores.redis.calls import LOOKS, WRITES, Scenario, a_claim, alike, enqueue, seen, set_paused, settlement
from windlass.api.operations import OPERATIONS
from windlass.core.errors import OutcomeUnknown, StoreUnavailable
from windlass.core.requests import Settled
from windlass.core.store_calls import RepeatSafety
from windlass.testing.conformance.fixtures import soon
from windlass.testing.conformance.given import a_job

NAME: Final = "name"
AUDIT: Final = 5
"""The place of what people did, in what is seen."""
KEPT_BY_THE_PROCESS: Final = {each.name for each in OPERATIONS if each.repeat is RepeatSafety.REPLY}
FORGOTTEN: Final = [each for each in WRITES if each.__name__ in KEPT_BY_THE_PROCESS]
KNOWN: Final = [each for each in WRITES if each not in FORGOTTEN]


async def undisturbed(scenario: Scenario) -> tuple[object, list[object]]:
    async with benched() as bench:
        call = await scenario(bench.direct, NAME)
        return alike(await call(bench.through)), await left(bench, scenario)


async def left(bench: Bench, scenario: Scenario) -> list[object]:
    found = await seen(bench.direct, NAME)
    # that somebody paused a queue is written down each time that it is asked for
    return [*found[:AUDIT], *found[AUDIT + 1 :]] if scenario is set_paused else found


def lose(bench: Bench, what: Literal["request", "replies"]) -> list[asyncio.Event]:
    if what == "request":
        return [bench.proxy.drop_request(1)]
    return [bench.proxy.drop_reply(1), bench.proxy.drop_reply(1)]


@pytest.mark.parametrize("scenario", WRITES, ids=lambda scenario: scenario.__name__)
async def test_a_call_whose_request_or_replies_are_lost_is_done_once_and_answers_as_the_first_time(
    scenario: Scenario,
) -> None:
    wanted = await undisturbed(scenario)
    losses: tuple[Literal["request", "replies"], ...] = ("request", "replies")

    for what in losses:
        async with benched() as bench:
            call = await scenario(bench.direct, NAME)
            lost = lose(bench, what)

            answer = alike(await call(bench.through))

            assert all(event.is_set() for event in lost)
            assert (answer, await left(bench, scenario)) == wanted, what


@pytest.mark.parametrize("look", LOOKS)
async def test_a_look_whose_reply_is_lost_is_made_again(look: str) -> None:
    async with benched() as bench:
        wanted: object = await LOOKS[look](bench.direct)
        lost = lose(bench, "replies")

        answer: object = await LOOKS[look](bench.through)

        assert all(event.is_set() for event in lost)
        assert type(answer) is type(wanted)


async def answered_by_another_process(bench: Bench, scenario: Scenario) -> object:
    """Let a call be done, keep its reply, and let another process serve before it is repeated."""
    call = await scenario(bench.direct, NAME)
    bench.proxy.hold(["answers"])
    bench.proxy.replied.clear()
    begun = asyncio.ensure_future(call(bench.through))
    await soon(bench.proxy.replied.wait())
    await bench.restart()
    bench.proxy.reset()
    bench.proxy.release()
    return alike(await begun)


@pytest.mark.parametrize("scenario", KNOWN, ids=lambda scenario: scenario.__name__)
async def test_a_call_that_was_done_by_a_process_which_is_gone_answers_as_the_first_time(scenario: Scenario) -> None:
    wanted = await undisturbed(scenario)
    async with benched() as bench:
        answer = await answered_by_another_process(bench, scenario)

        assert (answer, await left(bench, scenario)) == wanted


@pytest.mark.parametrize("scenario", FORGOTTEN, ids=lambda scenario: scenario.__name__)
async def test_a_call_that_only_a_process_which_is_gone_knew_of_is_not_done_again_and_says_so(
    scenario: Scenario,
) -> None:
    _, wanted = await undisturbed(scenario)
    async with benched() as bench:
        with pytest.raises(StoreUnavailable, match="not known whether") as told:
            await answered_by_another_process(bench, scenario)

        assert not told.value.retryable
        assert await left(bench, scenario) == wanted


async def test_a_call_that_was_never_sent_is_made_by_whichever_process_is_there() -> None:
    for scenario in FORGOTTEN:
        wanted = await undisturbed(scenario)
        async with benched() as bench:
            call = await scenario(bench.direct, NAME)
            await bench.restart()
            # it notices that its connections are gone
            await bench.through.stats()

            assert (alike(await call(bench.through)), await left(bench, scenario)) == wanted, scenario


async def test_an_enqueue_that_nobody_answers_says_which_job_is_in_doubt_and_is_known_when_it_is_repeated() -> None:
    async with benched(options="timeout=0.3") as bench:
        jobs = [a_job(NAME), a_job(NAME)]
        bench.proxy.hold(["answers"])

        with pytest.raises(OutcomeUnknown) as told:
            await bench.through.enqueue(jobs)

        assert told.value.job_id == jobs[0].id
        bench.proxy.release()
        again = await bench.through.enqueue(jobs)
        assert [(each.id, each.created) for each in again] == [(job.id, False) for job in jobs]


async def test_calls_that_shared_a_request_each_say_which_of_their_jobs_is_in_doubt() -> None:
    async with benched(options="timeout=0.3") as bench:
        batches = [[a_job(NAME)] for _ in range(3)]
        bench.proxy.hold(["answers"])

        told = await asyncio.gather(*(bench.through.enqueue(batch) for batch in batches), return_exceptions=True)

        assert [each.job_id for each in told if isinstance(each, OutcomeUnknown)] == [job.id for [job] in batches]


async def test_a_settlement_that_nobody_answers_is_known_when_it_is_repeated() -> None:
    async with benched(options="timeout=0.3") as bench:
        held = await a_claim(bench.direct, NAME)
        bench.proxy.hold(["answers"])

        with pytest.raises(OutcomeUnknown) as told:
            await bench.through.settle([settlement(held)])

        assert told.value.job_id == held.job.id
        bench.proxy.release()
        assert await bench.through.settle([settlement(held)]) == [Settled.REPEATED]


async def test_a_call_that_was_not_even_heard_leaves_no_doubt() -> None:
    async with benched(options="timeout=0.3") as bench:
        call = await enqueue(bench.direct, NAME)
        await bench.serving.stop()

        with pytest.raises(StoreUnavailable) as told:
            await call(bench.direct)

        assert told.value.retryable
        await bench.serving.start()
        assert await bench.direct.stats(NAME) == []
