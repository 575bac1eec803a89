"""How the schedules that an app declares come into the store."""

import asyncio
import logging
from collections.abc import Iterable

from windlass.client.client import Client
from windlass.client.schedules import put_schedule
from windlass.client.wanted import Wanted
from windlass.core.clock import Clock, Rng
from windlass.core.errors import Fenced, StoreUnavailable
from windlass.engine.service import backoff
from windlass.schedule.declared import Declared
from windlass.schedule.store_timeout import call_store

logger = logging.getLogger("windlass")


class Declaring:
    """Writes each declared schedule, again and again until the store takes it."""

    def __init__(self, client: Client, declared: Iterable[Declared], *, clock: Clock, rng: Rng) -> None:
        """Begin with all of them to be written, by the settings of `client`."""
        self._client = client
        self._clock = clock
        self._rng = rng
        self._left = {each.id: each for each in declared}
        self._failures = 0
        self.written: dict[str, Wanted] = {}
        """Those that the store has taken, by id, as they are wanted here."""
        self.again_at: float | None = None
        """When to try again, by the clock that never steps back; None when nothing is left to write."""

    async def attempt(self) -> None:
        """Write what is left, if it is time to; one that is refused is told of and stops no other.

        Raises `Fenced`, since nothing is written from here any more.
        """
        if not self._left or (self.again_at is not None and self._clock.monotonic() < self.again_at):
            return
        await asyncio.gather(*[self._write(schedule_id) for schedule_id in list(self._left)])
        self._failures = self._failures + 1 if self._left else 0
        self.again_at = self._clock.monotonic() + backoff(self._failures, self._rng) if self._left else None

    async def _write(self, schedule_id: str) -> None:
        try:
            wanted = self._left[schedule_id].wanted(self._client.preparer)
            written = put_schedule(self._client.store, wanted, declared=True)
            await call_store(written, f"to write schedule {schedule_id!r}", self._clock)
        except Fenced:
            raise
        except StoreUnavailable as error:
            logger.warning(
                "schedule %r is declared and could not be written, it is tried again: %s", schedule_id, error
            )
            return
        except Exception:
            logger.exception("schedule %r is declared and cannot be written: it does not fire from here", schedule_id)
        else:
            self.written[schedule_id] = wanted
        del self._left[schedule_id]
