"""What a migration waits for: its turn among migrators, and locks that others hold."""

import asyncio
import logging
from typing import Final

import asyncpg

from windlass.core.errors import StoreUnavailable
from windlass.stores.postgres.migration_watch import Watched
from windlass.stores.postgres.options import Options

TRIES: Final = 5
PAUSE: Final = 1.0
"""How often a migration tries to have its locks, and for how many seconds it rests between the first two times."""
LOOK_AGAIN: Final = 0.1

logger = logging.getLogger("windlass.postgres")


class Waits:
    """Waits for other processes, not for ever, and tells whom for."""

    def __init__(self, connection: Watched, options: Options, patience: float) -> None:
        """Wait for another migrator at most `patience` seconds."""
        self._connection = connection
        self._place = options.where
        self._patience = patience
        self._tries = 0
        self._until: float | None = None

    def begin_anew(self) -> None:
        """Forget how long the last migration took."""
        self._tries = 0
        self._until = None

    async def for_a_turn(self) -> None:
        """Wait for the process that brings the schema up now."""
        now = asyncio.get_running_loop().time()
        if self._until is None:
            self._until = now + self._patience
            logger.info("another process brings the schema of %s up: waiting for it", self._place)
        if now > self._until:
            message = (
                f"another process has been bringing the schema of {self._place} up for more than "
                f"{self._patience:.0f} s: wait until it is through, then try again"
            )
            raise StoreUnavailable(message, retryable=True)
        await asyncio.sleep(LOOK_AGAIN)

    async def for_a_lock(self, number: int, error: asyncpg.PostgresError) -> None:
        """Let those pass who had to wait behind the migration, and find out whom it waited for."""
        self._tries += 1
        holders = await self._holders()
        if self._tries == TRIES:
            message = (
                f"migration {number} of {self._place} was put off {TRIES} times, its tables are locked by {holders}: "
                "let that end, or end it with pg_terminate_backend, and try again"
            )
            raise StoreUnavailable(message, retryable=True) from error
        logger.warning("migration %s waits for a lock that is held by %s: trying again", number, holders)
        await asyncio.sleep(PAUSE * self._tries)

    async def _holders(self) -> str:
        rows = await self._connection.fetch("migration_blockers")
        told = [
            f"process {pid} (user {user}, application {application or 'without a name'}, {state or 'in a transaction'}"
            f"{f' since {since:%Y-%m-%d %H:%M:%S} UTC' if since else ''})"
            for pid, user, application, state, since in rows
        ]
        return ", ".join(told) or "a transaction that has ended meanwhile"
