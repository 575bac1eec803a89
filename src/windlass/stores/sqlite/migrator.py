"""Brings the schema of a file up, for `windlass migrate`."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from windlass.core.errors import SchemaMissing
from windlass.core.migrating import Standing, check_known
from windlass.stores.sqlite import database
from windlass.stores.sqlite.faults import translate
from windlass.stores.sqlite.store import SqliteStore


class SqliteMigrator:
    """See `core.migrating.Migrator`. A file that is not there, or that holds no store, is refused and not made."""

    def __init__(self, path: Path, store: SqliteStore) -> None:
        """Work on the file at `path`, which `store` opens as its URL says."""
        self._path = path
        self._store = store

    async def look(self) -> Standing:
        """Return where the schema stands."""
        found = self._found()
        return Standing(str(self._path), found, database.SCHEMA, tuple(range(found + 1, database.SCHEMA + 1)))

    async def apply(self) -> Standing:
        """Bring the schema up, all of it or nothing."""
        before = await self.look()
        await self._store.open()
        await self._store.close()
        return before

    def script(self, since: int) -> str:
        """Return the SQL that brings a file of version `since` up by hand."""
        check_known(since, database.SCHEMA)
        return database.script(since)

    def _found(self) -> int:
        database.check_folder(self._path)
        if not self._path.exists():
            message = f"there is no {self._path}: look at the URL, or let the first enqueue make it"
            raise SchemaMissing(message)
        try:
            # only read: a connection that may write would end with a checkpoint
            with closing(sqlite3.connect(f"file:{quote(str(self._path))}?mode=ro", uri=True)) as connection:
                found = database.schema_of(connection)
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
        if found == 0:
            message = f"{self._path} has no Windlass schema: look at the URL, or let the first enqueue make it"
            raise SchemaMissing(message)
        return found
