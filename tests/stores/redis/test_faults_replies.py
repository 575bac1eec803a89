"""Any reply that is lost, any request that never arrives, any error: a call is done once, answers as the first time.

So it is for every command that a call sends.
"""

import asyncio
import inspect
import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import pytest

from tests.redis.asking import ask
from tests.redis.keys import with_options
from tests.redis.proxy import Proxy
from tests.redis.server import new_url, server
from tests.stores.redis.calls import (
    LOOKS,
    NOT_OF_THE_SERVER,
    WRITES,
    Call,
    Scenario,
    alike,
    enqueue,
    left,
    opened,
)
from tests.stores.redis.owners import strays
from windlass.core.errors import StoreFull, StoreReadOnly, StoreUnavailable
from windlass.core.store import Store
from windlass.stores.redis.scripts import script

Fault: TypeAlias = Literal["request", "replies"]
FAULTS: Final[tuple[Fault, ...]] = ("request", "replies")
NAME: Final = "name"
LOADING: Final = "LOADING Redis is loading the dataset in memory"
OOM: Final = "OOM command not allowed when used memory > 'maxmemory'."
MENDED: Final = (
    LOADING,
    "READONLY You can't write against a read only replica.",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "CLUSTERDOWN The cluster is down",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "NOREPLICAS Not enough good replicas to write.",
    "NOSCRIPT No matching script. Please use EVAL.",
)
"""What another try mends."""
TOLD: Final = {
    OOM: StoreFull,
    "MISCONF Errors writing to the AOF file: No space left on device": StoreReadOnly,
    "NOPERM User nobody has no permissions to run the 'evalsha' command": StoreUnavailable,
    "ERR something that nobody has thought of": StoreUnavailable,
}


_undisturbed: Final[dict[tuple[Scenario, str], tuple[object, list[object], int]]] = {}


class Ready(NamedTuple):
    """A call that is about to be made, through a proxy; `direct` leads past it."""

    call: Call
    through: Store
    direct: Store
    url: str

    async def answer(self) -> object:
        return alike(await self.call(self.through))

    async def left(self) -> list[object]:
        return await left(self.direct, self.url, NAME)


class Bench:
    """A server behind a proxy."""

    def __init__(self, proxy: Proxy, spread: str) -> None:
        self.proxy = proxy
        self._spread = spread
        # a script that was not done does not know whether queues are spread
        self.faults: tuple[Fault, ...] = FAULTS[1:] if spread else FAULTS

    @asynccontextmanager
    async def ready(self, scenario: Scenario) -> AsyncGenerator[Ready]:
        """Prepare a call in a store of its own, to be made on a connection that is there."""
        with new_url() as url:
            options = f"timeout=20{self._spread}"
            port = urlsplit(self.proxy.url).port
            through_url = urlsplit(url)._replace(netloc=f"127.0.0.1:{port}").geturl()
            async with (
                opened(with_options(through_url, options)) as through,
                opened(with_options(url, options)) as direct,
            ):
                yield Ready(await scenario(direct, NAME), through, direct, url)

    async def undisturbed(self, scenario: Scenario) -> tuple[object, list[object], int]:
        """Return what a call answers when nothing goes wrong, what it leaves, and how many requests it makes."""
        known = scenario, self._spread
        if known not in _undisturbed:
            async with self.ready(scenario) as ready:
                before = self.proxy.requests
                answer = await ready.answer()
                _undisturbed[known] = answer, await ready.left(), self.proxy.requests - before
        return _undisturbed[known]

    def lose(self, fault: Fault, place: int) -> list[asyncio.Event]:
        """Lose a request of those to come, or the reply to it and that to what is sent next in its place."""
        if fault == "request":
            return [self.proxy.drop_request(place)]
        return [self.proxy.drop_reply(place), self.proxy.drop_reply(place)]


@pytest.fixture(scope="module", autouse=True)
def _taught() -> None:
    """Let the server know all scripts: a call makes as many requests the first time as ever."""
    for file in (files("windlass.stores.redis") / "scripts").iterdir():
        if file.is_file():
            ask(server(), "SCRIPT", "LOAD", script(file.name.removesuffix(".lua")).text)


@pytest.fixture(params=["", "&spread=queues"], ids=["one tag", "spread"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with Proxy(server()) as proxy:
        yield Bench(proxy, request.param)


def test_every_call_of_a_store_meets_every_fault() -> None:
    names = {name for name, _ in inspect.getmembers(Store) if not name.startswith("_")}

    assert names <= {scenario.__name__ for scenario in WRITES} | LOOKS.keys() | NOT_OF_THE_SERVER


@pytest.mark.parametrize("scenario", WRITES, ids=lambda scenario: scenario.__name__)
async def test_a_call_whose_replies_or_requests_are_lost_is_done_once_and_answers_as_the_first_time(
    bench: Bench, scenario: Scenario
) -> None:
    *wanted, requests = await bench.undisturbed(scenario)
    assert requests > 0

    for fault, place in itertools.product(bench.faults, range(1, requests + 1)):
        async with bench.ready(scenario) as ready:
            lost = bench.lose(fault, place)

            answer = await ready.answer()

            assert all(event.is_set() for event in lost)
            assert [answer, await ready.left()] == wanted, (fault, place)
            assert place < requests or strays(ready.url) == []


@pytest.mark.parametrize("bench", [""], indirect=True, ids=["one tag"])
@pytest.mark.parametrize("scenario", WRITES, ids=lambda scenario: scenario.__name__)
async def test_a_call_that_is_refused_has_done_nothing_and_may_be_made_again(bench: Bench, scenario: Scenario) -> None:
    *wanted, _ = await bench.undisturbed(scenario)
    async with bench.ready(scenario) as ready:
        before = await ready.left()
        refused = bench.proxy.fail(1, OOM)
        with pytest.raises(StoreFull):
            await ready.answer()
        assert await ready.left() == before
        put_off = bench.proxy.fail(1, LOADING)

        answer = await ready.answer()

        assert (refused.is_set(), put_off.is_set()) == (True, True)
        assert [answer, await ready.left()] == wanted


@pytest.mark.parametrize("name", LOOKS)
async def test_a_look_that_meets_a_fault_is_repeated_or_says_why(bench: Bench, name: str) -> None:
    look = LOOKS[name]
    async with bench.ready(enqueue) as ready:
        first: object = await look(ready.through)
        answer = type(first)

        for error in (*MENDED, *TOLD):
            met = bench.proxy.fail(1, error)
            if error in MENDED:
                assert type(await look(ready.through)) is answer
            else:
                with pytest.raises(StoreUnavailable) as told:
                    await look(ready.through)
                assert type(told.value) is TOLD[error]
            assert met.is_set()
        for fault in FAULTS:
            lost = bench.lose(fault, 1)
            assert type(await look(ready.through)) is answer
            assert all(event.is_set() for event in lost)
