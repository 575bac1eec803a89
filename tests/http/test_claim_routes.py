import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.http.asgi import Reply, Sender, ask
from tests.http.given_app import LIMITED, GivenApp, an_app, secret_of, until
from tests.http.given_tokens import bearer
from windlass import Fixed, QueueSettings
from windlass.api.operations import REQUEST
from windlass.api.roles import Role
from windlass.core.requests import Claimed, ClaimRequest
from windlass.core.states import State
from windlass.http.claiming import GIVEN_BACK_WITHIN
from windlass.testing import FakeClock

LOST = "0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d"


def _settle(claim: Any, do: str = "ack", **more: object) -> dict[str, object]:  # noqa: ANN401 - as it was told
    return {"do": do, "id": claim["job"]["id"], "token": claim["token"], **more}


async def test_a_claim_gives_jobs_strictly_in_the_order_of_queues() -> None:
    async with an_app(queues={"b": QueueSettings(lease=600)}) as given:
        await given.enqueued("a", "b", "b", "c")
        claims = (await given.done("/claims", {"queues": ["b", "c", "a"], "limit": 3}, who=Role.WORK))["claims"]

    assert [claim["job"]["queue"] for claim in claims] == ["b", "b", "c"]
    assert claims[0]["job"]["lease_expires_at"] > claims[2]["job"]["lease_expires_at"]


async def test_each_ending_does_what_it_says() -> None:
    clock = FakeClock()
    async with an_app(clock=clock, retry=Fixed(50)) as given:
        claims = await given.claimed(*"abcdefg")
        told = await given.done(
            "/claims/settle",
            {
                "settlements": [
                    _settle(claims[0], result={"n": 1}),
                    _settle(claims[1], "nack", error="boom"),
                    _settle(claims[2], "nack", error={"message": "boom", "type": "E", "traceback": "t"}, delay=70),
                    _settle(claims[3], "dead_letter", error="never"),
                    _settle(claims[4], "snooze", delay=5),
                    _settle(claims[5], "release"),
                    _settle(claims[6], "cancel", reason="no more"),
                ]
            },
            who=Role.WORK,
        )
        jobs = [await given.client.get(claim["job"]["id"]) for claim in claims]

    assert [each["outcome"] for each in told["settled"]] == ["done"] * 7
    assert [job.state for job in jobs if job] == [
        State.SUCCEEDED, State.SCHEDULED, State.SCHEDULED, State.DEAD, State.SCHEDULED, State.PENDING, State.CANCELLED,
    ]  # fmt: skip
    assert [(job.run_at - clock.now()).total_seconds() for job in jobs[1:3] if job] == [50, 70]
    assert [job.last_error for job in jobs[1:4] if job] == ["boom", "E: boom", "never"]
    assert jobs[0] is not None
    assert (jobs[0].result, jobs[0].result_codec) == (b'{"n":1}', "json")


async def test_no_decided_retry_goes_beyond_the_attempts_of_a_job() -> None:
    async with an_app(max_attempts=2, retry=Fixed(0)) as given:
        [first] = await given.claimed("a")
        await given.done("/claims/settle", {"settlements": [_settle(first, "retry", error="boom")]}, who=Role.WORK)
        [again] = (await given.done("/claims", {"queues": ["a"]}, who=Role.WORK))["claims"]
        await given.done("/claims/settle", {"settlements": [_settle(again, "retry", error="boom")]}, who=Role.WORK)
        job = await given.client.get(first["job"]["id"])

    assert job is not None
    assert (job.state, job.attempt) == (State.DEAD, 2)


async def test_a_claim_brings_no_more_than_a_caller_can_hold() -> None:
    async with an_app(max_payload=10_000_000) as given:
        for _ in range(3):
            await given.client.enqueue("a", b"x" * 9_000_000)

        claims = (await given.done("/claims", {"queues": ["a"], "limit": 3}, who=Role.WORK))["claims"]
        row = await given.client.stats("a")

    assert (len(claims), row.pending, row.running) == (1, 2, 1)


async def test_a_first_try_that_comes_after_its_repeat_takes_nothing() -> None:
    async with an_app() as given:
        asked = {"queues": ["a"]}
        repeat = await given.post("/claims", asked, who=Role.WORK, request="r", serving=given.api.id)
        await given.enqueued("a")

        late = await given.post("/claims", asked, who=Role.WORK, request="r")
        again = await given.post("/claims", asked, who=Role.WORK, request="r", serving=given.api.id)

    assert [repeat.document, late.document] == [{"claims": []}, {"claims": []}]
    assert len(again.document["claims"]) <= 1


async def test_one_settlement_that_is_wrong_is_refused_alone() -> None:
    async with an_app() as given:
        claims = await given.claimed("a", "b", "c", "d")
        told = await given.done(
            "/claims/settle",
            {
                "settlements": [
                    _settle(claims[0], then=[{"queue": "no spaces"}]),
                    _settle(claims[1], result=1, codec="json"),
                    {**_settle(claims[2]), "token": "wrong"},
                    _settle(claims[3], then=[{"queue": "next"}]),
                    _settle(claims[3]),
                    {"do": "nack", "id": LOST, "token": "t", "error": "gone"},
                ]
            },
        )
        [following] = await given.client.jobs(limit=1, after=claims[3]["job"]["id"])

    assert [each["outcome"] for each in told["settled"]] == ["refused", "refused", "lost", "done", "repeated", "lost"]
    assert [each["problem"]["error"] for each in told["settled"][:2]] == ["invalid_name", "invalid_value"]
    assert (following.queue, following.parent_id) == ("next", claims[3]["job"]["id"])


async def test_what_ends_is_kept_as_the_serving_side_is_set_for_its_queue() -> None:
    async with an_app(queues={"a": QueueSettings(keep_succeeded=0)}) as given:
        claims = await given.claimed("a", "b", "a")
        assert [claim["job"]["queue"] for claim in claims] == ["a", "a", "b"]
        settlements = [_settle(claims[0]), _settle(claims[1], keep=True), _settle(claims[2])]
        await given.done("/claims/settle", {"settlements": settlements})

        kept = [await given.client.get(claim["job"]["id"]) is not None for claim in claims]

    assert kept == [False, True, True]


async def test_what_is_out_of_reach_is_refused_alone() -> None:
    async with an_app() as given:
        claims = await given.claimed("mine", "mine")
        settlements = [_settle(claims[0], then=[{"queue": "theirs"}]), _settle(claims[1], then=[{"queue": "mine"}])]
        told = await given.done("/claims/settle", {"settlements": settlements}, who=LIMITED, request="r")
        again = await given.done("/claims/settle", {"settlements": settlements}, who=LIMITED, request="r")

    assert [each["outcome"] for each in told["settled"]] == ["refused", "done"]
    assert told["settled"][0]["problem"]["error"] == "not_allowed"
    assert again == told


async def test_renewals_and_notes_tell_which_claims_hold() -> None:
    async with an_app() as given:
        [claim] = await given.claimed("q")
        held = {"id": claim["job"]["id"], "token": claim["token"]}
        lost = {"id": LOST, "token": "t"}
        renewed = await given.done("/claims/renew", {"claims": [held, lost], "lease": 60})
        line = {"level": "info", "text": "half"}
        noted = await given.done("/claims/note", {"notes": [{**held, "progress": {"done": 1}, "lines": [line]}, lost]})
        job = (await given.get(f"/jobs/{held['id']}")).document

    assert [each is not None for each in renewed["renewed"]] == [True, False]
    assert noted["written"] == [True, False]
    assert (job["progress"], job["log"][0]["text"]) == ({"done": 1.0}, "half")


async def test_a_claim_that_waits_is_given_the_job_that_comes() -> None:
    async with an_app() as given:
        waiting = asyncio.ensure_future(given.done("/claims", {"queues": ["q"], "wait": 60}))
        await given.listened("queue:q")
        [made] = await given.enqueued("q")

        assert [claim["job"]["id"] for claim in (await waiting)["claims"]] == [made]


async def test_a_claim_that_waits_in_vain_ends_in_time() -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given:
        waiting = asyncio.ensure_future(given.done("/claims", {"queues": ["q"], "wait": 20}))
        await given.listened("queue:q")
        while not waiting.done():
            clock.advance(1)
            await asyncio.sleep(0)

    assert await waiting == {"claims": []}


async def test_whoever_hangs_up_while_waiting_holds_nothing() -> None:
    async with an_app() as given:
        sender = _sent({"queues": ["q"], "wait": 60})
        waiting = asyncio.ensure_future(_claim(given, sender))
        await given.listened("queue:q")
        sender.hang_up()
        await waiting
        await given.enqueued("q")

        assert (await given.client.stats("q")).pending == 1
        assert given.hub.silent


async def test_a_claim_that_comes_after_its_caller_has_gone_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_app() as given:
        [made] = await given.enqueued("q")
        store, asked, go = given.client.store, asyncio.Event(), asyncio.Event()
        claim = store.claim

        async def slow_claim(*args: Any, **more: Any) -> Any:  # noqa: ANN401 - as the store's
            asked.set()
            await go.wait()
            return await claim(*args, **more)

        monkeypatch.setattr(store, "claim", slow_claim)
        sender = _sent({"queues": ["q"], "wait": 60})
        waiting = asyncio.ensure_future(_claim(given, sender))
        await asked.wait()
        sender.hang_up()
        await waiting
        go.set()
        await given.api.close()
        job = await given.client.get(made)

    assert job is not None
    assert (job.state, job.attempt, job.history[0].outcome) == (State.PENDING, 0, "released")


async def test_a_stop_answers_everybody_who_waits() -> None:
    async with an_app() as given:
        [claim] = await given.claimed("other")
        held = {"id": claim["job"]["id"], "token": claim["token"]}
        waits = [
            asyncio.ensure_future(given.done("/claims", {"queues": ["q"], "wait": 60})),
            asyncio.ensure_future(given.done("/claims/stops", {"claims": [held], "wait": 60})),
            asyncio.ensure_future(given.get(f"/jobs/{held['id']}/wait?timeout=60")),
        ]
        await given.listened("queue:q", "flags", "ends")
        await asyncio.sleep(0)
        given.api.stop_waiting()

        claims, stops, waited = await asyncio.gather(*waits)
        assert (claims, stops, waited.document) == ({"claims": []}, {"stops": []}, {"outcome": "timed_out"})
        assert await given.done("/claims", {"queues": ["q"], "wait": 60}) == {"claims": []}


async def test_a_holder_who_waits_is_told_to_stop() -> None:
    async with an_app() as given:
        claims = await given.claimed("q", "q", "q")
        held = [{"id": claim["job"]["id"], "token": claim["token"]} for claim in claims]
        waiting = asyncio.ensure_future(given.done("/claims/stops", {"claims": held[:2], "wait": 60}))
        await given.listened("flags")
        await given.done("/jobs/cancel", {"ids": [held[1]["id"]]})

        assert (await waiting)["stops"] == [{"id": held[1]["id"], "reason": "cancel"}]
        stale = [{**held[2], "token": "stale"}]
        told = await given.done("/claims/stops", {"claims": stale, "wait": 60})
        assert told["stops"] == [{"id": held[2]["id"], "reason": "claim_lost"}]


async def test_whoever_waits_for_a_job_is_told_its_end() -> None:
    async with an_app() as given:
        [claim] = await given.claimed("q")
        waiting = asyncio.ensure_future(given.get(f"/jobs/{claim['job']['id']}/wait?timeout=60", who=Role.PRODUCE))
        await given.listened("ends")
        await given.done("/claims/settle", {"settlements": [_settle(claim, result=[1])]})
        told = (await waiting).document

    assert (told["outcome"], told["job"]["state"], told["job"]["result"]) == ("completed", "succeeded", [1])


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_a_repeat_is_answered_as_the_first_time(store: str, tmp_path: Path) -> None:
    url = "memory://" if store == "memory" else f"sqlite:///{tmp_path}/jobs.db"
    async with an_app(url) as given:
        jobs = {"jobs": [{"queue": "q"}, {"queue": "q"}]}
        enqueued = [await given.done("/jobs", jobs, request="1") for _ in range(2)]
        claims = [await given.done("/claims", {"queues": ["q"]}, request="1") for _ in range(2)]
        settlements = {"settlements": [_settle(claims[0]["claims"][0], "nack", error="x")]}
        settled = [await given.done("/claims/settle", settlements, request="1") for _ in range(2)]
        other = await given.done("/jobs", jobs, who=Role.PRODUCE, request="1")

        assert enqueued[0] == enqueued[1]
        assert claims[0] == claims[1]
        assert settled == [{"settled": [{"outcome": "done"}]}] * 2
        assert other != enqueued[0]
        assert (await given.client.stats("q")).totals.enqueued == 4


async def test_a_name_that_another_call_had_is_refused() -> None:
    async with an_app() as given:
        await given.done("/jobs", {"jobs": [{"queue": "q"}]}, request="1")
        reply = await given.post("/jobs", {"jobs": [{"queue": "q"}, {"queue": "q"}]}, request="1")
        unprintable = await given.post("/jobs", {"jobs": [{"queue": "q"}]}, request="a b")

    assert (reply.status, unprintable.status) == (422, 422)


async def test_a_claim_that_waited_gives_the_same_jobs_to_a_repeat(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    async with an_app(url) as given:
        asked = {"queues": ["q"], "wait": 60}
        waiting = asyncio.ensure_future(given.done("/claims", asked, request="1"))
        await until(lambda: len(given.api.shared.claims_under_way) == 1)
        joined = asyncio.ensure_future(given.done("/claims", asked, request="1"))
        # looked in vain once: the receipt of that look stays
        await until(lambda: not given.hub.silent)
        await given.enqueued("q", "q")
        first = await waiting

        assert len(first["claims"]) == 1
        assert await joined == first
    async with an_app(url) as given:
        again = await given.post("/claims", asked, request="1", serving="f" * 32)
        assert again.document == first


async def test_what_the_first_was_given_stays_while_a_repeat_waits_for_it() -> None:
    async with an_app() as given:
        first = _sent({"queues": ["q"], "wait": 60})
        gone = asyncio.ensure_future(_claim(given, first, request="1"))
        await given.listened("queue:q")
        repeat = asyncio.ensure_future(_claim(given, _sent({"queues": ["q"], "wait": 60}), request="1"))
        await asyncio.sleep(0)
        first.hang_up()
        await gone
        [made] = await given.enqueued("q")

        [claim] = (await repeat).document["claims"]
        assert claim["job"]["id"] == made
        assert (await given.client.stats("q")).running == 1


async def test_a_repeat_is_given_nothing_that_goes_back_since_the_first_hung_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_app(f"sqlite:///{tmp_path}/jobs.db") as given:
        await given.enqueued("q")
        store = given.client.store
        claim, begun, over = store.claim, asyncio.Event(), asyncio.Event()

        async def late(request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
            claims = await claim(request, request_id=request_id)
            if not begun.is_set():
                begun.set()
                await over.wait()
            return claims

        monkeypatch.setattr(store, "claim", late)
        first = _sent({"queues": ["q"], "wait": 60})
        gone = asyncio.ensure_future(_claim(given, first, request="1"))
        await begun.wait()
        first.hang_up()
        await gone
        repeat = asyncio.ensure_future(_claim(given, _sent({"queues": ["q"], "wait": 60}), request="1"))
        await asyncio.wait((repeat,), timeout=0.1)
        over.set()
        [claimed] = (await repeat).document["claims"]
        await until(lambda: not vars(given.api.shared)["_late"])

        told = await given.done("/claims/settle", {"settlements": [_settle(claimed)]})

        assert told == {"settled": [{"outcome": "done"}]}
        assert (await given.client.stats("q")).succeeded == 1


@pytest.mark.parametrize("wait, longest", [(20, 20), (0, GIVEN_BACK_WITHIN)])
async def test_a_repeat_waits_no_longer_than_its_own_time_for_what_the_first_has_left(
    monkeypatch: pytest.MonkeyPatch, wait: float, longest: float
) -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given:
        await given.enqueued("q")
        store, begun, over = given.client.store, asyncio.Event(), asyncio.Event()
        claim = store.claim

        async def hang(*args: Any, **more: Any) -> Any:  # noqa: ANN401 - as the store's
            begun.set()
            await over.wait()
            return await claim(*args, **more)

        monkeypatch.setattr(store, "claim", hang)
        first = _sent({"queues": ["q"], "wait": 60})
        gone = asyncio.ensure_future(_claim(given, first, request="1"))
        await begun.wait()
        first.hang_up()
        await gone
        asked = {"queues": ["q"], "wait": wait}
        repeat = asyncio.ensure_future(given.post("/claims", asked, who=Role.WORK, request="1"))
        began = clock.monotonic()
        while not repeat.done() and clock.monotonic() < began + 60:
            clock.advance(0.01)
            await asyncio.sleep(0)
        took = clock.monotonic() - began
        over.set()
        assert longest <= took < longest + 1
        refused = await repeat
        await until(lambda: not vars(given.api.shared)["_late"])
        other = await given.done("/claims", {"queues": ["q"]}, who=Role.WORK, request="2")

    assert (refused.status, refused.document["error"]) == (503, "store_unavailable")
    assert refused.document["facts"]["retryable"]
    assert len(other["claims"]) == 1


def _sent(asked: dict[str, object]) -> Sender:
    return Sender([msgspec.json.encode(asked)])


async def _claim(given: GivenApp, sender: Sender, request: str | None = None) -> Reply:
    size = str(len(sender.parts[0]))
    headers = [bearer(secret_of(Role.WORK)), ("content-type", "application/json"), ("content-length", size)]
    headers += [(REQUEST, request)] if request else []
    return await ask(given.api, "POST", "/api/v1/claims", headers=headers, sender=sender)
