"""Adds the counts of commits up in the background, so that whoever looks at them has little to add."""

import asyncio
import logging
from typing import Final

from windlass.core.errors import WindlassError
from windlass.stores.postgres.moves.fold import AT_ONCE, fold
from windlass.stores.postgres.runner import Runner

logger = logging.getLogger("windlass.postgres")

ADD_AFTER: Final = 500
"""Commits of this process after which it adds up."""
ALL_EVERY: Final = 300.0
"""Seconds after which it begins at the first one again, for those that were committed late."""


class Adder:
    """Counts the commits of one store; it works for all processes, since any of them may add up."""

    def __init__(self, runner: Runner) -> None:
        """Add up through `runner`."""
        self._runner = runner
        self._commits = 0
        self._above = 0
        self._next_above = 0
        self._all_at = 0.0
        self._under_way: asyncio.Task[None] | None = None

    def committed(self) -> None:
        """Note a commit that counted."""
        self._commits += 1
        if self._commits >= ADD_AFTER and self._under_way is None:
            self._commits = 0
            self._under_way = asyncio.get_running_loop().create_task(self._add_up_quietly(), name="windlass adder")
            self._under_way.add_done_callback(self._ended)

    @property
    def counted(self) -> int:
        """The number up to which changes were added up, but for those that were committed late."""
        return self._above

    async def close(self) -> None:
        """Leave the rest to others."""
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.wait({self._under_way})

    def _ended(self, adding: "asyncio.Task[None]") -> None:
        self._under_way = None
        if not adding.cancelled() and (error := adding.exception()) is not None:
            logger.error("counts could not be added up", exc_info=error)

    async def add_up(self) -> None:
        """Add up what is new; rows that an old snapshot keeps alive are not stepped over again and again."""
        now = asyncio.get_running_loop().time()
        above = self._above
        if now > self._all_at + ALL_EVERY:
            # once: if it takes too long to step over all that is gone, what is new is added up all the same
            above, self._all_at = 0, now
        changes, highest = await self._runner.run(lambda _: fold(above, alone=True), whole=False)
        if changes < AT_ONCE:
            highest = max(highest, self._next_above)
        # one turn behind: what was under way at the last one is committed by now, or is found later
        self._above, self._next_above = min(self._next_above, highest), highest

    async def _add_up_quietly(self) -> None:
        try:
            await self.add_up()
        except WindlassError as error:
            logger.debug("counts could not be added up: %s", error)
