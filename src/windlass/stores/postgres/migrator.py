"""Brings the schema of a database up, for `windlass migrate`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from windlass.core.migrating import Standing, check_known
from windlass.kit.reaching import told_when_slow
from windlass.stores.postgres.by_hand import by_hand
from windlass.stores.postgres.faults import translate
from windlass.stores.postgres.migrate import OURS, plan, prepare
from windlass.stores.postgres.migration_watch import Connection
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import open_session

PATIENCE: Final = 3600.0
"""For how many seconds the command waits for another process that brings the schema up."""


class PostgresMigrator:
    """See `core.migrating.Migrator`. The database must be there; the schema in it is made where there is none."""

    def __init__(self, options: Options) -> None:
        """Work on the database of `options`, as far as its URL allows it."""
        self._options = options
        self._migrations = OURS

    async def look(self) -> Standing:
        """Return where the schema stands."""
        async with self._connected() as connection:
            return await plan(connection, self._options, migrations=self._migrations)

    async def apply(self) -> Standing:
        """Bring the schema up, one transaction for each migration."""
        async with self._connected() as connection:
            before = await plan(connection, self._options, migrations=self._migrations)
            await prepare(connection, self._options, migrations=self._migrations, patience=PATIENCE)
            return before

    def script(self, since: int) -> str:
        """Return the SQL that brings a schema of version `since` up by hand."""
        check_known(since, self._migrations.known)
        return by_hand(self._options.schema, self._migrations, since)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Connection]:
        try:
            with told_when_slow(self._options.where, self._options.timeout, lambda: None):
                session = await open_session(self._options, timeout=self._options.timeout)
            try:
                yield session.connection
            except BaseException:
                session.terminate()
                raise
            await session.close()
        except Exception as error:
            raise translate(error, self._options.where) from error
