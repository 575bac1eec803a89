"""A move that is cut short at any step, or meets what others do meanwhile."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.client.given_moves import GONE, TO, everything, filled, in_memory, told, work_off
from windlass import AlreadyRunning, Client, NewJob, StoreUnavailable
from windlass.client import mover
from windlass.client.mover import move, undo
from windlass.core.job import Failure
from windlass.core.moving import Moved, Parcel
from windlass.core.verdict import ToRetry
from windlass.testing import FakeClock
from windlass.testing.conformance.given import settlement


class Killed(BaseException):
    """The mover is no more."""


class Mortal:
    """A store on which whoever calls it dies at one of the calls: before it is done, or after."""

    def __init__(self, store: Any, fate: "Fate") -> None:  # noqa: ANN401 - as good as a store
        self._store = store
        self._fate = fate

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a store has
        found = getattr(self._store, name)
        if not callable(found) or name in {"listen", "open", "close", "lock", "unlock"}:
            return found

        async def call(*args: object, **kwargs: object) -> object:
            return await self._fate.meet(lambda: found(*args, **kwargs))

        return call


class Fate:
    """Lets so many steps happen, and no more; a call has two, before it and after."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    async def meet(self, call: Callable[[], Any]) -> object:
        self._step()
        done = await call()
        self._step()
        return done

    def _step(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.mark.slow
async def test_a_mover_that_dies_at_any_step_loses_nothing_and_doubles_nothing(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mover, "FIRST_PARCEL", 2)
    monkeypatch.setattr(mover, "MOST_JOBS", 2)
    steps = 0
    while await _move_with_a_death(clock, steps):
        steps += 1

    assert steps > 50


async def _move_with_a_death(clock: FakeClock, steps: int) -> bool:
    """Move, die after so many steps, let the target work off what it has, and move again; whether anybody died."""
    async with in_memory(clock) as source, in_memory(clock) as target:
        await filled(source, clock)
        wanted = sorted(job.id for job in await everything(source))
        fate = Fate(steps)
        died = await _dies(source, target, fate)
        ran = await work_off(target)

        await move(source, target, to=TO, wait=0, told=told)

        ran += await work_off(target)
        waiting = [job.id for job in await everything(target)]
        assert sorted([*ran, *waiting]) == wanted
        assert await everything(source) == []
        assert await target.kv.get("name") == b"value"
        assert await target.schedules.get("often") is not None
        assert not (await target.enqueue("c", unique=GONE)).created
        assert await source.store.timed_keys(limit=10) == []
        return died


async def _dies(source: Client, target: Client, fate: Fate) -> bool:
    stores = source.store, target.store
    mortal: list[Any] = [Mortal(store, fate) for store in stores]
    source.store, target.store = mortal
    try:
        await move(source, target, to=TO, wait=0, told=told)
    except Killed:
        return True
    finally:
        source.store, target.store = stores
    return False


async def test_what_came_over_before_a_mover_died_does_not_run_again_when_the_rest_comes_back(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await source.enqueue_many([NewJob("a", b"1"), NewJob("a", b"2")])
        await source.store.set_moved(Moved(TO, "cut short"))
        packed = await source.store.pack("a", limit=1)
        assert await target.store.unpack(Parcel("cut short", "a", 1, packed))
        assert await work_off(target) == [packed.jobs[0].id]

        await move(target, source, to="sqlite:///back.db", wait=0, told=told)

        assert [job.payload for job in await everything(source)] == [b"2"]


async def test_a_mover_that_slept_while_another_went_on_is_refused(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await source.enqueue_many([NewJob("a", b"slow"), NewJob("a", b"once")])
        claim = await source.claim("a")
        assert claim is not None
        awake = target.store

        async def go_on() -> None:
            await carry_one(source, awake, 1)
            await source.ack(claim, then=[NewJob("a", b"next")])
            await carry_one(source, awake, 2)

        asleep: Any = Asleep(awake, go_on)
        target.store = asleep
        with pytest.raises(AlreadyRunning, match="another process moves the jobs of 'a'"):
            await move(source, target, to=TO, wait=0, told=told)
        target.store = awake

        assert [job.payload for job in await everything(target)] == [b"once", b"next"]


class Asleep:
    """A store beside which somebody else goes on, before a parcel reaches it, or after."""

    def __init__(
        self,
        store: Any,  # noqa: ANN401 - as good as a store
        meanwhile: Callable[[], Any],
        later: Callable[[], Any] | None = None,
    ) -> None:
        self._store = store
        self._meanwhile = meanwhile
        self._later = later or nothing

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a store has
        return getattr(self._store, name)

    async def unpack(self, parcel: Parcel) -> object:
        await self._meanwhile()
        done = await self._store.unpack(parcel)
        await self._later()
        return done


async def test_a_mover_that_slept_until_the_jobs_were_back_takes_none_of_them(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await source.enqueue("a", b"once")
        awake = target.store

        async def bring_back() -> None:
            moved = await source.store.moved()
            assert moved is not None
            packed = await target.store.pack("a", limit=1)
            await source.store.let_go(move=moved.move, jobs=[job.id for job in packed.jobs])
            await source.store.set_moved(None)
            assert await source.store.unpack(Parcel("back", "a", 1, packed))

        asleep: Any = Asleep(awake, nothing, bring_back)
        target.store = asleep
        with pytest.raises(AlreadyRunning, match="this move has ended meanwhile"):
            await move(source, target, to=TO, wait=0, told=told)

        assert [job.payload for job in await everything(source)] == [b"once"]


async def carry_one(source: Client, target: Any, number: int) -> None:  # noqa: ANN401 - a store
    """Do what another mover does."""
    moved = await source.store.moved()
    assert moved is not None
    packed = await source.store.pack("a", limit=1)
    assert await target.unpack(Parcel(moved.move, "a", number, packed))
    await source.store.let_go(jobs=[job.id for job in packed.jobs])


async def test_a_store_that_was_away_for_a_while_is_tried_again(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await source.enqueue("a", b"once")
        there = target.store

        async def away() -> None:
            target.store = there
            message = "it is away"
            raise StoreUnavailable(message, retryable=True)

        gone: Any = Asleep(there, away)
        target.store = gone
        async with asyncio.TaskGroup() as tasks:
            moving = tasks.create_task(move(source, target, to=TO, wait=0, told=told))
            await clock.timers(2)
            gone._meanwhile = nothing
            await clock.let_pass(1)

        assert moving.result().jobs == 1
        assert [job.payload for job in await everything(target)] == [b"once"]


async def nothing() -> None:
    """Let it happen."""


class Interrupted:
    """A store that something happens to just before one of its calls, once."""

    def __init__(self, store: Any, name: str, meanwhile: Callable[[], Any]) -> None:  # noqa: ANN401 - as good as a store
        self._store = store
        self._name = name
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a store has
        found = getattr(self._store, name)
        if name != self._name:
            return found

        async def call(*args: object, **kwargs: object) -> object:
            self._name = ""
            await self._meanwhile()
            return await found(*args, **kwargs)

        return call


async def test_jobs_that_an_earlier_mover_sends_while_they_are_moved_back_run_once(clock: FakeClock) -> None:
    async with in_memory(clock) as first, in_memory(clock) as second:
        await first.enqueue_many([NewJob("a", b"1"), NewJob("a", b"2")])
        await first.store.set_moved(Moved(TO, "there"))
        await carry_one(first, second.store, 1)
        ran = await work_off(second)
        last = await first.store.pack("a", limit=1)
        store = second.store

        async def arrive_and_run() -> None:
            # the mover is killed before the first store lets go of the job
            assert await store.unpack(Parcel("there", "a", 2, last))
            ran.extend(await work_off(second))

        interrupted: Any = Interrupted(store, "set_moved", arrive_and_run)
        second.store = interrupted
        await move(second, first, to="memory://back", wait=0, told=told)
        ran += await work_off(first)

        assert sorted(ran) == sorted(set(ran))
        assert len(ran) == 2


async def test_a_job_that_ends_at_the_last_moment_and_waits_again_goes_over(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await source.enqueue("a", b"slow")
        claim = await source.claim("a")
        assert claim is not None
        store = source.store

        async def nack() -> None:
            await store.settle([settlement(claim, ToRetry(timedelta(minutes=1), Failure("not yet")))])

        interrupted: Any = Interrupted(store, "newest", nack)
        source.store = interrupted
        await move(source, target, to=TO, wait=0, told=told)
        source.store = store

        assert [job.payload for job in await everything(target)] == [b"slow"]


async def test_a_schedule_that_skips_while_its_job_waits_comes_behind_that_job(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await source.enqueue("a")
        await source.schedules.put("alone", 60, NewJob("a"), overlap="skip")
        await source.schedules.put("often", 60, NewJob("a"), overlap="allow")
        store, there = target.store, list[str]()

        async def look() -> None:
            there.extend(schedule.id for schedule in (await store.schedules()).schedules)

        interrupted: Any = Interrupted(store, "unpack", look)
        target.store = interrupted
        await move(source, target, to=TO, wait=0, told=told)
        target.store = store

        assert there == ["often"]
        assert await target.schedules.get("alone") is not None


async def test_two_do_not_move_a_store_at_once_and_none_undoes_it_meanwhile(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target, source.lock(mover.LEAVING, 60):
        for call in (lambda: move(source, target, to=TO, wait=0, told=told), lambda: undo(source)):
            calling = asyncio.ensure_future(call())
            while not calling.done():
                await clock.timers(1)
                await clock.let_pass(1)

            with pytest.raises(AlreadyRunning, match="another process moves jobs"):
                await calling


async def test_a_mover_whose_lock_was_lost_has_moved_all_the_same(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await source.enqueue("a", b"once")
        store = target.store

        async def sleep() -> None:
            clock.advance(mover.LOCK_TTL)
            assert await store.lock(mover.ARRIVING, "another", mover.LOCK_TTL)

        interrupted: Any = Interrupted(store, "unpack", sleep)
        target.store = interrupted
        carried = await move(source, target, to=TO, wait=0, told=told)
        target.store = store

        assert carried.jobs == 1
