"""The database while this process owns it: opened, beaten for, and opened anew where it broke."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from windlass.core.clock import Clock, Rng
from windlass.core.errors import ClientClosed, Fenced, StoreOwned, StoreUnavailable, WindlassError
from windlass.core.topics import Hub
from windlass.stores.slatedb import engine_clock, keys, owner
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.dispatcher import Dispatcher
from windlass.stores.slatedb.doors import open_database
from windlass.stores.slatedb.faults import NOT_BEGUN, fenced, late
from windlass.stores.slatedb.opening import prepare, read_begin
from windlass.stores.slatedb.pending_calls import PendingCall
from windlass.stores.slatedb.repeats import Repeats
from windlass.stores.slatedb.table import Table
from windlass.stores.slatedb.untold import Untold

BEAT_ALONG: Final = timedelta(seconds=1)
"""A beat goes with a write that is made anyway, so often."""
BEAT_ALONE: Final = timedelta(seconds=3)
OPEN_AGAIN_AFTER: Final = 1.0


class Owning:
    """Gives whoever has calls the dispatcher that serves them; belongs to one event loop.

    `given_up` is told of calls whose caller has gone, `in_doubt` of those whose caller was told that nobody knows what
    became of them. `untold` are settlements that were done all the same. `lost` is the error of all calls once another
    process owns the database.
    """

    def __init__(
        self,
        address: Address,
        clock: Clock,
        rng: Rng,
        hub: Hub,
        *,
        given_up: Callable[[PendingCall, Any], None],
        in_doubt: Callable[[PendingCall, Any], None],
    ) -> None:
        self.lost: Fenced | None = None
        self._address = address
        self._clock = clock
        self._rng = rng
        self._hub = hub
        self._given_up = given_up
        self._in_doubt = in_doubt
        self.untold = Untold()
        self._repeats = Repeats()
        self._owner = owner.here(clock.now())
        self._beaten_at = self._owner.seen_at
        self._owned = False
        self._tried_at = 0.0
        self._ended: set[str] = set()
        self._database: Database | None = None
        self._dispatcher: Dispatcher | None = None
        self._opening: asyncio.Timeout | None = None
        self._end_at: float | None = None
        """When all has ended, by the clock of the loop, once the database is to be closed."""

    async def open(self) -> Dispatcher:
        """Own the database from now on; raises `StoreOwned` while another process does."""
        try:
            async with asyncio.timeout_at(self._end_at) as self._opening:
                return await self._open()
        except TimeoutError as error:
            raise self.late() from error
        finally:
            self._opening = None

    async def _open(self) -> Dispatcher:
        self._tried_at = time.monotonic()
        now = self._clock.now()
        owner.begin(self._owner)
        ended = await owner.check_free(self._address, now, self._owner.ownership, again=self._owned)
        self._database = database = await open_database(self._address)
        self._pass_haste_on()
        await prepare(database, self._address.where, create=self._address.create)
        begin = await read_begin(database, now)
        # whoever had it until now may have written since it was looked at, and writes no more
        await asyncio.sleep(engine_clock.behind(await database.get(keys.LAST)).total_seconds())
        await database.write({keys.OWNER: self._record(now), keys.LAST: self._last()})
        await database.flush()
        self._owned = True
        table = Table(database, begin, self._rng)
        table.ownership = self._owner.ownership
        if ended:
            self._ended |= table.inherit(ended)
        table.ended_servers = self._ended
        table.untold = self.untold
        table.repeats = self._repeats
        await self.untold.compare(table)
        self._dispatcher = dispatcher = Dispatcher(
            database,
            table,
            self._hub,
            clock=self._clock,
            address=self._address,
            given_up=self._given_up,
            in_doubt=self._in_doubt,
            beat=self._beat,
        )
        self._pass_haste_on()
        return dispatcher

    async def ready(self) -> Dispatcher:
        """Return what serves; the database is opened anew where it broke, unless another process came since."""
        dispatcher = self._dispatcher
        if dispatcher is not None and dispatcher.broken is None:
            return dispatcher
        self.look_for_others()
        if self.lost is not None:
            raise self.lost
        why = None if dispatcher is None else dispatcher.broken
        if self._end_at is not None:
            raise why or ClientClosed
        if time.monotonic() < self._tried_at + OPEN_AGAIN_AFTER:
            raise why or StoreUnavailable(f"{self._address.where} is opened anew in a moment", retryable=True)
        await self.let_go()
        self._address = replace(self._address, take_over=False)
        try:
            return await self.open()
        except (StoreOwned, Fenced) as taken:
            self.lost = fenced(self._address)
            self._hub.ring_all()
            raise self.lost from taken

    def look_for_others(self) -> bool:
        """Return whether another process has taken the database over, which is told to whoever waits."""
        dispatcher, database = self._dispatcher, self._database
        if self.lost is None and dispatcher is not None and database is not None:
            if isinstance(dispatcher.broken, Fenced):
                self.lost = dispatcher.broken
            elif database.fenced:
                self.lost = fenced(self._address)
                dispatcher.break_off(self.lost)
        return self.lost is not None

    @property
    def fenced(self) -> Fenced | None:
        """What the first call was told that found the database taken over, before the others are."""
        dispatcher = self._dispatcher
        broken = None if dispatcher is None else dispatcher.broken
        return broken if isinstance(broken, Fenced) else None

    @property
    def patience(self) -> float:
        """Return how many seconds a caller waits at most."""
        return self._address.timeout

    def expire(self) -> None:
        """Tell those who have waited for too long since they were served."""
        if self._dispatcher is not None:
            self._dispatcher.expire(time.monotonic() - self.patience, lambda: late(self._address))

    def late(self) -> WindlassError:
        """Return what those are told who have waited for too long and were not even served."""
        return late(self._address, NOT_BEGUN)

    @property
    def beat_is_due(self) -> bool:
        """Whether it is time for a beat of its own."""
        return self.lost is None and not self._beaten_at <= self._clock.now() < self._beaten_at + BEAT_ALONE

    async def answered(self) -> None:
        """Return when nothing is under way."""
        if self._dispatcher is not None:
            await self._dispatcher.answered()

    def hurry(self) -> None:
        """Let all that is under way, and the closing after it, have ended when the deadline of one call is past."""
        if self._end_at is None:
            self._end_at = asyncio.get_running_loop().time() + self._address.timeout
            if self._opening is not None:
                self._opening.reschedule(self._end_at)
            self._pass_haste_on()

    async def close(self) -> None:
        """Answer what is under way, and let the next owner come at once, as far as there is time for it."""
        self.hurry()
        dispatcher, database = self._dispatcher, self._database
        if dispatcher is not None and database is not None:
            await dispatcher.close()
            if dispatcher.broken is None:
                with contextlib.suppress(WindlassError):
                    await database.write({keys.OWNER: None, keys.LAST: self._last()})
                    await database.flush()
        await self.let_go()
        owner.let_go(self._owner)

    async def let_go(self) -> None:
        """Close the database, whatever became of it."""
        dispatcher, database = self._dispatcher, self._database
        self._database = None
        if dispatcher is not None:
            await dispatcher.close()
        # not before: who still looks is told of a deadline by it
        self._dispatcher = None
        if database is not None:
            await database.close()

    def _pass_haste_on(self) -> None:
        if self._end_at is not None and self._database is not None:
            self._database.end_by(self._end_at)
            if self._dispatcher is not None:
                self._dispatcher.hurry()

    def _beat(self, table: Table) -> None:
        """Let the owner's record go with a write that is made anyway, or alone when it is time."""
        now = self._clock.now()
        along = table.has_changes and not self._beaten_at <= now < self._beaten_at + BEAT_ALONG
        if along or self.beat_is_due:
            table.put(keys.OWNER, self._record(now))
            table.put(keys.LAST, self._last())

    def _record(self, now: datetime) -> bytes:
        self._beaten_at = now
        return owner.encode(msgspec.structs.replace(self._owner, seen_at=now))

    def _last(self) -> bytes:
        return engine_clock.encode(self._owner.ownership)
