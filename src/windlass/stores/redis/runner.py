"""Runs scripts on our own connections, and repeats them where that is right."""

import asyncio
import random
import secrets
import struct
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

import msgspec

from windlass.core.clock import Clock
from windlass.core.duration import to_micros
from windlass.core.errors import OutcomeUnknown, StoreCorrupt, StoreMoved, StoreUnavailable, WindlassError
from windlass.core.failpoint import reach
from windlass.core.topics import Hub, Topic
from windlass.kit.connections import Connections
from windlass.kit.doubt import in_doubt
from windlass.stores.redis.away import Away
from windlass.stores.redis.faults import Fault, NotReplicated, is_elsewhere, kind, may_be_half_done, translate
from windlass.stores.redis.line import Refused, Word
from windlass.stores.redis.options import Options, Place
from windlass.stores.redis.places import Places, open_place, places_of
from windlass.stores.redis.requests import Ask, pack
from windlass.stores.redis.scripts import Script, script
from windlass.stores.redis.weight import check_size
from windlass.stores.redis.wire import Wire

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 1.0
_LAST_TRY: Final = 0.05
"""Seconds before its deadline after which a call is not tried again: it would only be left alone, and in doubt."""
_LATE: Final = 0.3
"""Seconds that a server may be late to notice that nobody wants to wait any longer: it looks ten times in a second."""
ONE_OF_SEVERAL: Final = 2.0
"""Seconds in which one server of several must let us in, or another one is asked."""
_ROUND_PATIENCE: Final = 1.0
"""Seconds after which a round goes on to the next queue where no server answers."""
_TOLD: Final = struct.Struct(">I")
_AT_ONCE: Final = 5
"""Redirections that are followed without a pause: after that a Cluster is not in order."""


class Runner:
    """Runs the scripts of one store; every call ends at its deadline, whatever the network does."""

    def __init__(self, options: Options, clock: Clock, hub: Hub) -> None:
        """Connect to nothing yet; `hub` is rung at what was changed here."""
        self._options = options
        self._hub = hub
        self.name = secrets.token_hex(8)
        """How others know that news is ours."""
        self.patience = options.timeout
        """Seconds after which no call is repeated any more."""
        self._clock = clock
        self._places: Places = places_of(options)
        self._connections: dict[Place, Connections[Wire]] = {}
        self._away = Away(options.where)
        self.met: str | None = None
        """What a call has met last, as users are told; None before that."""
        self._answered: set[Place] = set()
        self._inspect: Callable[[bytes], None] | None = None

    def inspect(self, look: Callable[[bytes], None]) -> None:
        """Show `look` what every server tells of itself that is connected to from now on; it raises to refuse one."""
        self._inspect = look

    def look(self, prefix: str, name: str, ask: Ask, *, in_round: bool = False) -> Awaitable[bytes]:
        """Run a script that only reads."""
        return self._run(_Call(prefix, script(name), ask, in_round=in_round))

    def run(
        self, prefix: str, name: str, ask: Ask, *, doubt: str | None = None, in_round: bool = False
    ) -> Awaitable[bytes]:
        """Run a script that changes something.

        When a connection was lost it is run again until the deadline, and told so: one that must not be done twice has
        a request in `ask`, by which it knows. If it is still not known at the deadline whether it was done,
        `OutcomeUnknown(doubt)` is raised, or without a `doubt` a `StoreUnavailable` that is retryable. What is done
        `in_round` is given up sooner where no server answers, but for a claim that is in doubt.
        """
        return self._run(_Call(prefix, script(name), ask, doubt=doubt, writes=True, in_round=in_round))

    async def ask(self, prefix: str, *words: Word) -> object:
        """Send a plain command that only reads to the server that has the keys which begin with `prefix`."""
        return await self._finish(_Command(prefix, words))

    async def place(self, prefix: str, deadline: float) -> Place:
        """Return where the server is that has the keys which begin with `prefix`."""
        return await self._places.find(prefix, deadline)

    def learn(self, prefix: str, place: Place, error: Exception) -> bool:
        """Learn from an error whether the server at `place` is not the one, or does not answer; return whether so."""
        moved = kind(error) in (Fault.ELSEWHERE, Fault.LOST)
        if moved:
            self._places.moved(prefix, place, error)
        return moved

    async def close(self) -> None:
        """Let go of every connection."""
        await asyncio.gather(*[connections.close() for connections in self._connections.values()])

    def abandon(self) -> None:
        """Let go of the parent's connections, in a forked child."""
        for connections in self._connections.values():
            connections.abandon()

    def _at(self, place: Place) -> Connections[Wire]:
        if place not in self._connections:
            self._connections[place] = Connections(
                lambda timeout: self._open(place, timeout),
                most=self._options.connections,
                where=self._options.where,
                is_lost=lambda error: kind(error) is Fault.LOST,
                translate=translate,
                patient=False,
            )
        return self._connections[place]

    async def _open(self, place: Place, timeout: float) -> Wire:
        async with asyncio.timeout(timeout if self._options.form == "single" else min(timeout, ONE_OF_SEVERAL)):
            wire = await open_place(self._options, place)
            if self._inspect is not None and (place in self._answered or self._places.leads_to(place)):
                # it may be another one by now, or have other settings
                try:
                    self._inspect(bytes(await wire.ask("INFO")))
                except BaseException:
                    wire.terminate()
                    raise
            return wire

    async def _run(self, call: "_Call") -> bytes:
        try:
            return self._heard(call, await self._finish(call))
        except StoreCorrupt as fault:
            raise await self._named(call.prefix, fault) from fault
        except OutcomeUnknown as unknown:
            if isinstance(cause := unknown.__cause__, StoreCorrupt):
                raise unknown from await self._named(call.prefix, cause)
            raise

    async def _named(self, prefix: str, fault: StoreCorrupt) -> StoreCorrupt:
        """Return the error with the names of the keys, which the server does not tell."""
        try:
            reply: bytes = await self._finish(_Call(prefix, script("mistyped"), {}))
        except StoreUnavailable:
            return fault
        found: list[str] = msgspec.msgpack.decode(reply)
        if not found:
            return fault
        return StoreCorrupt(
            f"the store at {self._options.where} is damaged: of the keys that begin with {prefix}, {'; '.join(found)}: "
            "restore them from a backup, or delete them"
        )

    async def _finish(self, tries: "_Tries[T]") -> T:
        """Try on one connection after the other until it is done, or time is over."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        deadline = began + self._options.timeout
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._try(tries, deadline)
            except Exception as error:  # noqa: BLE001 - judged below, where nothing holds on to its frames
                met = error
            self.met = str(translate(met, self._options.where))
            # replicas were waited for as long as there was time
            if kind(met) is Fault.FINAL or isinstance(met, NotReplicated) or tries.passed_by:
                raise self._verdict(tries, met)
            if tries.redirected > _AT_ONCE or not is_elsewhere(met):
                left = deadline - _LAST_TRY - loop.time()
                await asyncio.sleep(min(left, pause * random.random()))  # noqa: S311 - spreads load, no secret
                pause = min(pause * 2, _LONGEST_PAUSE)
            last_try = deadline - _LAST_TRY
            if loop.time() > (min(last_try, began + _ROUND_PATIENCE) if tries.may_give_up else last_try):
                self._away.note(tries.prefix, tries.silent)
                raise self._verdict(tries, met)

    def _heard(self, call: "_Call", reply: bytes) -> bytes:
        """Ring whoever waits here for what was changed, and return the rest of the reply."""
        if not call.script.tells:
            return reply
        end = _TOLD.size + _TOLD.unpack_from(reply)[0]
        if call.in_doubt:
            # it may have been done before, and nobody knows what that changed
            self._hub.ring_all()
        elif end > _TOLD.size and not self._hub.silent:
            self._hub.ring([Topic(topic) for topic in reply[_TOLD.size : end].decode(errors="replace").split(" ")])
        return reply[end:]

    async def _try(self, tries: "_Tries[T]", deadline: float) -> T:
        place = None
        try:
            place = await self._places.find(tries.prefix, deadline)
            if tries.may_give_up:
                self._pass_by(tries, place)
            connections = self._at(place)
            with connections.lent(connections.take_idle() or await connections.take(deadline)) as wire:
                reply = await tries.do(self, wire, deadline)
        except Exception as error:
            self._learn(tries, place, error)
            raise
        self._away.forget(tries.prefix, place)
        if place not in self._answered:
            self._answered.add(place)
        return reply

    def _pass_by(self, tries: "_Tries[T]", place: Place) -> None:
        """Raise where nobody answered a moment ago."""
        refusal = self._away.refusal(tries.prefix, place)
        if refusal is not None:
            tries.passed_by = True
            raise refusal

    async def run_on(self, wire: Wire, call: "_Call", deadline: float) -> bytes:
        """Run a script on one connection."""
        argument = call.argument(self._clock, self.name)
        check_size(len(argument))
        reach("redis.before_script")
        call.sent = True
        try:
            reply = await wire.ask("EVALSHA", call.script.digest, 1, call.prefix, argument, deadline=deadline)
        except Refused as refusal:
            if refusal.code != "NOSCRIPT":
                raise
            # the whole text is known to the server from then on, until it forgets all scripts
            reply = await wire.ask("EVAL", call.script.text, 1, call.prefix, argument, deadline=deadline)
        reach("redis.after_script")
        if call.writes and self._options.wait:
            # it was done, but whether that stays so is not known, whatever is met from now on
            before, call.in_doubt = call.in_doubt, True
            await self._wait_for_replicas(wire, deadline)
            call.in_doubt = before
        return bytes(reply)

    async def _wait_for_replicas(self, wire: Wire, deadline: float) -> None:
        left = deadline - _LATE - asyncio.get_running_loop().time()
        have_it = await wire.ask("WAIT", self._options.wait, max(int(left * 1000), 1), deadline=deadline)
        if have_it < self._options.wait:
            raise NotReplicated(have_it, self._options.wait)

    def _learn(self, tries: "_Tries[T]", place: Place | None, error: Exception) -> None:
        # the server alone can say that nothing was done
        unknown = not isinstance(error, Refused) or may_be_half_done(error)
        tries.in_doubt |= tries.sent and tries.writes and unknown
        tries.sent = False
        if place is not None and not tries.passed_by and self.learn(tries.prefix, place, error):
            tries.redirected += 1
            if kind(error) is Fault.LOST:
                tries.silent = place

    def _verdict(self, tries: "_Tries[T]", error: Exception) -> WindlassError:
        fault = translate(error, self._options.where)
        # whoever says that the store was moved has looked whether it was done before
        if not tries.in_doubt or not isinstance(fault, StoreUnavailable) or isinstance(fault, StoreMoved):
            return fault
        return in_doubt(fault, tries.doubt)


class _Tries(ABC, Generic[T]):
    """Something that was asked for, and what became of it so far."""

    def __init__(self, prefix: str, *, doubt: str | None = None, writes: bool = False, in_round: bool = False) -> None:
        self.prefix = prefix
        self.doubt = doubt
        self.writes = writes
        self.sent = False
        self.in_doubt = False
        self.redirected = 0
        self.silent: Place | None = None
        self.passed_by = False
        self.gives = False
        self._in_round = in_round

    @property
    def may_give_up(self) -> bool:
        """Whether others wait that need not: a claim that may have been given is nobody's until its lease ends."""
        return self._in_round and not (self.in_doubt and self.gives)

    @abstractmethod
    def do(self, runner: Runner, wire: Wire, deadline: float) -> Awaitable[T]:
        """Do it on one connection."""


class _Command(_Tries[object]):
    """A plain command."""

    def __init__(self, prefix: str, words: Sequence[Word]) -> None:
        super().__init__(prefix)
        self._words = words

    def do(self, runner: Runner, wire: Wire, deadline: float) -> Awaitable[object]:  # noqa: ARG002 - it needs no other
        """Send it."""
        return wire.ask(*self._words, deadline=deadline)


class _Call(_Tries[bytes]):
    """A script."""

    def __init__(
        self,
        prefix: str,
        made: Script,
        ask: Ask,
        *,
        doubt: str | None = None,
        writes: bool = False,
        in_round: bool = False,
    ) -> None:
        super().__init__(prefix, doubt=doubt, writes=writes, in_round=in_round)
        self.script = made
        self.gives = made.name == "claim"
        self._ask = ask

    def do(self, runner: Runner, wire: Wire, deadline: float) -> Awaitable[bytes]:
        """Run it."""
        return runner.run_on(wire, self, deadline)

    def argument(self, clock: Clock, name: str) -> bytes:
        """Return what the script is given."""
        if self.script.tells:
            self._ask["me"] = name
        if not clock.goes_by_itself:
            self._ask["now"] = to_micros(clock.now())
        if self.in_doubt:
            self._ask["again"] = True
        return pack(self._ask)
