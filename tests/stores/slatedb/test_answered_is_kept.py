"""Whatever was answered is in the bucket, whichever calls were served together: nothing else is left after a crash."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, Final, TypeAlias

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.stores.slatedb.lived import job
from tests.stores.slatedb.opened import Held, gathering, new_address, opened, room_of
from windlass.core.job import Claim, Failure
from windlass.core.requests import ClaimRequest, KvWrite, RescueRequest, Settled, Settlement
from windlass.core.retention import Keep, Retention
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.verdict import ToRetry, ToSucceeded
from windlass.stores.slatedb import SlateStore
from windlass.stores.slatedb.moves.housekeeping import PruneBeside
from windlass.testing import FakeClock

Call: TypeAlias = Callable[[SlateStore, list[Claim]], Awaitable[Any]]
"""A call, for which the claims are those that were given before."""

MINUTE: Final = timedelta(minutes=1)
KEEP_A_MINUTE: Final = Retention(Keep(MINUTE, MINUTE, MINUTE))
QUEUES: Final = ("email", "later")
FAILURE: Final = Failure("boom")
TURNS: Final = 0.05
_new: Final = count(100)

CALLS: Final[dict[str, Call]] = {
    "enqueue": lambda store, _: store.enqueue([job(next(_new))]),
    "enqueue later": lambda store, _: store.enqueue([job(next(_new), "later", delay=MINUTE)]),
    "claim": lambda store, _: store.claim(ClaimRequest(QUEUES, 2, MINUTE)),
    "settle": lambda store, claims: store.settle(_ends(claims)),
    "retry": lambda store, claims: store.settle(
        [each._replace(verdict=ToRetry(MINUTE, FAILURE)) for each in _ends(claims)]
    ),
    "renew": lambda store, claims: store.renew([(claim.job.id, claim.token) for claim in claims], MINUTE),
    "kv": lambda store, _: store.kv_write(KvWrite(b"k", b"%d" % next(_new))),
    "pause": lambda store, _: store.set_paused("later", paused=True),
    "due in": lambda store, _: store.due_in(["later"]),
    "promote": lambda store, _: store.promote(limit=5),
    "rescue": lambda store, _: store.rescue(RescueRequest(), KEEP_A_MINUTE),
    "prune": lambda store, _: store.prune(KEEP_A_MINUTE, limit=5),
    "prune beside": lambda store, _: room_of(store).submit(PruneBeside()),
    "stats": lambda store, _: store.stats(),
}
groups: Final = st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=4)


def _ends(claims: Sequence[Claim]) -> list[Settlement]:
    return [Settlement(claim.job.id, claim.token, ToSucceeded()) for claim in claims]


# examples are small as they are, and making them smaller takes minutes: an engine is opened for each
@settings(deadline=None, max_examples=40, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(before=st.lists(groups, max_size=3), since=st.lists(groups, max_size=3), minutes=st.integers(0, 2), last=groups)
def test_what_is_answered_is_kept(
    before: list[list[str]], since: list[list[str]], minutes: int, last: list[str]
) -> None:
    async def live() -> None:
        address, clock, claims = new_address(), FakeClock(), list[Claim]()
        async with opened(address, clock=clock) as store:
            await store.enqueue([job(1), job(2), job(3, "later", delay=MINUTE)])
            for group in before:
                await asyncio.gather(*await _together(store, claims, group))
        # the next owner has read nothing of what stands where
        async with opened(address, clock=clock) as store:
            for group in since:
                await asyncio.gather(*await _together(store, claims, group))
            clock.advance(MINUTE * minutes)
            held = Held(store)
            calls = await _together(store, claims, last)
            await asyncio.wait(calls, timeout=TURNS)
            async with opened(replace(address, look=True), clock=clock) as durable:
                for name, call in zip(last, calls, strict=True):
                    if call.done():
                        await _look_whether_kept(durable, name, call.result(), claims)
            await held.let_go()
            await asyncio.gather(*calls)

    asyncio.run(live())


async def _together(store: SlateStore, claims: list[Claim], group: Sequence[str]) -> "list[asyncio.Future[Any]]":
    async with gathering(store):
        calls: list[asyncio.Future[Any]] = [asyncio.ensure_future(CALLS[name](store, claims)) for name in group]
    for name, call in zip(group, calls, strict=True):
        if name == "claim":
            call.add_done_callback(lambda done: claims.extend(done.result().jobs))
    return calls


async def _look_whether_kept(
    durable: Store,
    name: str,
    told: Any,  # noqa: ANN401 - of any call
    claims: Sequence[Claim],
) -> None:
    match name:
        case "enqueue" | "enqueue later":
            [found] = await durable.get([told[0].id])
            assert found is not None
        case "claim":
            for claim in told.jobs:
                [found] = await durable.get([claim.job.id])
                assert found is not None
                assert found.delivery == claim.delivery
        case "settle" | "retry":
            assert Settled.DONE not in told
            # what was answered before is durable, so who repeats it need not wait
            repeated = [claim for claim, result in zip(claims, told, strict=False) if result is Settled.REPEATED]
            for found, claim in zip(await durable.get([each.job.id for each in repeated]), repeated, strict=True):
                assert found is None or found.state is not State.RUNNING or found.delivery != claim.delivery
        case "renew":
            assert set(told) <= {None}
        case "kv" | "pause":
            raise AssertionError
        case "stats":
            assert told == await durable.stats()
        case "promote" | "prune":
            assert told == 0
        case "rescue":
            assert told == []
        case _:
            pass
