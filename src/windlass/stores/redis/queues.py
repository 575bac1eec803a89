"""The queues of a store that are kept each under a hash tag of its own, and where things are."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from typing import Final, cast

import msgspec

from windlass.core.errors import StoreMoved, StoreUnavailable
from windlass.core.ids import JobId
from windlass.core.queries import GetGlances, GetMoved, ListSchedules
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.failures import Failures
from windlass.stores.redis.keys import prefix_of, prefix_of_queue
from windlass.stores.redis.keyspace import Keyspace, ask
from windlass.stores.redis.requests import Ask
from windlass.stores.redis.rounds import Rounds, Runs
from windlass.stores.redis.runner import Runner

MOST_QUEUES: Final = 1024
"""Queues that have a number of their own: with more, jobs of two queues may have the same number."""
COMPARED_EVERY: Final = 60.0
"""Seconds after which an enqueue looks whether home still knows the queues of this process."""


class Queues:
    """Every queue, and `home`: the keys that belong to none, such as servers, locks and the caller's own values.

    Home knows the names of all queues. A name is written there before the first job of its queue, so no queue with jobs
    is unknown, until home loses its last moments, as in a failover. What was lost is written again by whoever has found
    the name before, is given a job of the queue, or works it.
    """

    def __init__(
        self,
        runner: Runner,
        name: str,
        new_request_id: Callable[[], str],
        vouch: Callable[[str], Awaitable[None]],
    ) -> None:
        """Know of no queue yet; `name` is that of the store.

        `vouch` looks at the server of a prefix, and raises where it forgets jobs.
        """
        self._runner = runner
        self._rounds = Rounds(runner)
        self._vouch = vouch
        self._vouched: set[str] = set()
        self._name = name
        self._new_request_id = new_request_id
        self._parts: dict[str, Keyspace] = {}
        self._numbers: dict[str, int] = {}
        self._compared_at = 0.0
        self._home = prefix_of(name)
        self.home = Keyspace(Caller(runner, self._home, new_request_id))
        self.packed: dict[JobId, str] = {}
        """The queues of the jobs that were packed last: an id does not tell, and every queue would be asked."""

    async def close(self) -> None:
        """Finish what was accepted."""
        for part in (*self._parts.values(), self.home):
            await part.close()

    def caller(self, queue: str, *, in_round: bool = False) -> Caller:
        """Return what runs scripts on the keys of a queue, which need not be there; to enqueue it must be known.

        In a round through several queues it gives up soon where no server answers.
        """
        if queue in self._parts:
            return self._parts[queue].round if in_round else self._parts[queue].caller
        runner = self._rounds if in_round else self._runner
        return Caller(runner, prefix_of_queue(self._name, queue), self._new_request_id)

    def claims(self, queue: str) -> Keyspace:
        """Return what claims from a queue, which need not be there: whoever asks for jobs makes no queue known."""
        return self._parts[queue] if queue in self._parts else self._part(queue, None)

    def has(self, queue: str) -> bool:
        """Whether this process knows that the name of a queue is written down."""
        return queue in self._parts

    async def refuse_if_moved(self) -> None:
        """Raise `StoreMoved` where nothing new may begin: for calls that may find nothing that would refuse them."""
        moved = await self.home.ask(GetMoved())
        if moved is not None:
            raise StoreMoved(moved.to)

    async def of(self, queue: str, *, in_round: bool = False) -> Keyspace:
        """Return the keys of a queue, whose name is written down from now on."""
        if queue not in self._parts:
            number = await self._write_name(self._rounds if in_round else self._runner, queue)
            self._numbers.setdefault(queue, number)
            self._parts.setdefault(queue, self._part(queue, self._numbers[queue]))
        return self._parts[queue]

    async def taking(self, queue: str) -> Keyspace:
        """Return the keys of a queue that something new comes to, once its server was looked at."""
        if queue not in self._vouched:
            await self._vouch(prefix_of_queue(self._name, queue))
            self._vouched.add(queue)
        part = await self.of(queue)
        now = asyncio.get_running_loop().time()
        if now >= self._compared_at + COMPARED_EVERY:
            # whoever only enqueues never asks home for anything else
            self._compared_at = now
            with suppress(StoreUnavailable):
                await self._names(self._rounds)
        return part

    async def seen(self, queues: Iterable[str]) -> None:
        """Let home know queues that have been met, which it may have lost; one that has nothing is no queue."""
        for queue in set(queues) - self._parts.keys():
            with suppress(StoreUnavailable):
                if await self._is_there(self._rounds, queue):
                    await self.of(queue, in_round=True)

    async def settling(self, queue: str, *, with_jobs: bool) -> Keyspace:
        """Return the keys of a queue whose claims come to an end, which need not be known: their tokens are proof."""
        if with_jobs and queue not in self._parts and await self._is_there(self._runner, queue):
            # they need a number
            return await self.of(queue)
        return self.claims(queue)

    async def known(self, queue: str, *, in_round: bool = False) -> Keyspace | None:
        """Return the keys of a queue whose name was written down before."""
        names = self._parts if queue in self._parts else await self._names(self._rounds if in_round else self._runner)
        return await self.of(queue, in_round=in_round) if queue in names else None

    async def names(self) -> list[str]:
        """Return the names of all queues, in order; those that home has lost are written there again."""
        return await self._names(self._runner)

    async def names_in_round(self, failures: Failures) -> list[str]:
        """Return the names of all queues; where home does not answer, those that this process knows."""
        with failures.noted():
            return await self._names(self._rounds)
        return sorted(self._parts)

    async def _names(self, runner: Runs) -> list[str]:
        found = {*await self._names_at(runner, self._home)}
        for lost in self._parts.keys() - found:
            # they are known here, and whoever asks next tries again
            with suppress(StoreUnavailable):
                await self._write_name(self._rounds, lost)
        return sorted(found | self._parts.keys())

    async def _is_there(self, runner: Runs, queue: str) -> bool:
        """Whether a queue ever had a job, as it says itself."""
        return bool(await self._names_at(runner, prefix_of_queue(self._name, queue)))

    async def _names_at(self, runner: Runs, prefix: str) -> list[str]:
        return cast("list[str]", msgspec.msgpack.decode(await runner.look(prefix, "queues", {})))

    async def _write_name(self, runner: Runs, queue: str) -> int:
        """Write the name of a queue at home, and return its number: where home has none, the one that its jobs have."""
        ask: Ask = {"queue": queue, "most": MOST_QUEUES}
        number = await self._number(runner, self._home, "know_queue", ask)
        if number is None:
            number = self._numbers.get(queue)
            if number is None:
                last = await self._number(runner, prefix_of_queue(self._name, queue), "last_number", {"queue": queue})
                number = None if last is None else last % MOST_QUEUES
            number = await self._number(runner, self._home, "know_queue", {**ask, "sure": True, "number": number})
        return cast("int", number)

    async def _number(self, runner: Runs, prefix: str, name: str, ask: Ask) -> int | None:
        run = runner.run if name == "know_queue" else runner.look
        return cast("int | None", msgspec.msgpack.decode(await run(prefix, name, ask)))

    async def prefixes(self) -> list[str]:
        """Return what the keys of each queue begin with."""
        return [prefix_of_queue(self._name, name) for name in await self.names()]

    async def places_of(self, ids: Collection[JobId]) -> dict[JobId, str]:
        """Return the queues of jobs: every queue is asked, since an id does not tell.

        Of two queues that both have a job of one id it is the first by name, as in every look.
        """
        failures = Failures()
        places: dict[JobId, str] = {}
        for found in await failures.gather([self._found(name, ids) for name in await self.names()]):
            places = found | places
        failures.throw_unless(places.keys() >= set(ids))
        return places

    async def _found(self, queue: str, ids: Collection[JobId]) -> dict[JobId, str]:
        found = await ask(self.caller(queue, in_round=True), GetGlances(ids))
        return dict.fromkeys(found, queue)

    async def keep_schedule(self, schedule_id: str, queue: str) -> str:
        """Write down that a schedule is kept with `queue`, and return the queue it is kept with if it is another."""
        reply = await self._runner.run(self._home, "keep_schedule", {"id": schedule_id, "queue": queue})
        return cast("str", msgspec.msgpack.decode(reply))

    async def queue_of_schedule(self, schedule_id: str) -> str | None:
        """Return the queue that a schedule is kept with; every queue is asked when that is not written down."""
        reply = await self._runner.look(self._home, "queue_of_schedule", {"id": schedule_id})
        at = cast("str | None", msgspec.msgpack.decode(reply))
        if at is not None:
            return at
        names = await self.names()
        found = await asyncio.gather(*[ask(self.caller(name), ListSchedules([schedule_id])) for name in names])
        at = next((name for name, there in zip(names, found, strict=True) if there.schedules), None)
        return None if at is None else await self.keep_schedule(schedule_id, at)

    async def forget_schedule(self, schedule_id: str, queue: str) -> None:
        """Write down that a schedule is no longer kept with `queue`."""
        await self._runner.run(self._home, "forget_schedule", {"id": schedule_id, "queue": queue})

    def _part(self, queue: str, number: int | None) -> Keyspace:
        prefix, begin = prefix_of_queue(self._name, queue), f"{queue}|"
        caller, in_round = (
            Caller(runner, prefix, self._new_request_id, queue_number=number, tokens_begin=begin)
            for runner in (self._runner, self._rounds)
        )
        return Keyspace(caller, in_round)
