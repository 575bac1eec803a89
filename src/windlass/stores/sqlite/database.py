"""Opening the file: connections, settings, schema."""

import os
import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, Literal, TypeVar
from urllib.parse import quote

from windlass.core.errors import SchemaMissing, SchemaTooNew, SchemaTooOld, StoreCorrupt, StoreUnavailable
from windlass.core.failpoint import reach
from windlass.stores.sqlite.faults import not_a_database
from windlass.stores.sqlite.statements import migration, sql
from windlass.stores.sqlite.turns import GIVE_UP_AFTER, Turns

SCHEMA: Final = 4
PAGE_CACHE_KIB: Final = 8_192
PAGE_SIZE: Final = 2_048
"""Of a file that we make: a lone commit writes four pages, and half of each costs less."""
LOG_LIMIT: Final = 64 * 1024 * 1024
_umask = threading.Lock()

C = TypeVar("C", bound=sqlite3.Connection)


@dataclass(frozen=True, slots=True)
class Options:
    """What the URL says beside the path."""

    synchronous: Literal["full", "normal"] = "full"
    create: bool = True
    migrate: bool = False


def check_place(path: Path, options: Options) -> None:
    """Refuse what cannot be a store, before any file is made beside it."""
    check_folder(path)
    if path.is_dir():
        message = f"{path} is a folder: name a file in it"
        raise StoreUnavailable(message)
    if not path.exists():
        if not options.create:
            message = f"there is no {path}, and ?create=no forbids making it"
            raise SchemaMissing(message)
        return
    if path.stat().st_size == 1:
        # SQLite takes a single byte for an empty file, and would write over it
        raise not_a_database(path)
    # immutable: SQLite reads the header without a lock and without the log; what else it says may not be true yet
    with closing(sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True)) as connection:
        try:
            connection.execute("select count(*) from sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise


def check_folder(path: Path) -> None:
    """Refuse a file in a folder that is not there, which no first enqueue would make."""
    folder = path.parent
    if not folder.is_dir():
        message = f"there is no folder {folder} for {path.name}: make it first, or look at the URL"
        raise StoreUnavailable(message)


def open_database(path: Path, options: Options, turns: Turns) -> sqlite3.Connection:
    """Return the connection that writes, on a file whose schema is the one this release works with.

    What is not a database, damaged, or of a newer release is refused before anything is written.
    """
    turns.take_in_time(path)
    try:
        _check_not_emptied(path, turns)
        connection = connect(path, options)
        try:
            _check_whole(connection, path)
            _bring_up(connection, path, options)
            _set_up(connection)
        except BaseException:
            connection.close()
            raise
        turns.mark_store()
    finally:
        turns.give()
    return connection


class SameFile:
    """Looks whether the file at a path is still the one that was opened: nobody would find a write to another."""

    def __init__(self, path: Path) -> None:
        """Remember the file that is there now."""
        self._path = path
        self._name = str(path)
        self._inode = path.stat().st_ino

    def check(self) -> None:
        """Raise `StoreUnavailable` when the file was deleted or replaced."""
        try:
            inode = os.stat(self._name).st_ino  # noqa: PTH116 - a look by name: the file must not be opened
        except FileNotFoundError:
            inode = None
        if inode != self._inode:
            message = (
                f"{self._path} was deleted or replaced while it was open: stop, put the file back, and connect again"
            )
            raise StoreUnavailable(message)


def connect(path: Path, options: Options) -> sqlite3.Connection:
    """Return a connection with our settings; a new file is made readable by this user alone."""
    return connect_as(sqlite3.Connection, path, options)


def connect_as(factory: type[C], path: Path, options: Options) -> C:
    """Return a connection as `connect`, of the class `factory`."""
    mode = "rwc" if options.create else "rw"
    with _private_files():
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode={mode}",
            uri=True,
            timeout=GIVE_UP_AFTER,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=factory,
        )
        try:
            # SQLite opens the file at the first look; this also tells what is not a database
            connection.execute("select count(*) from sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
    connection.execute("pragma wal_autocheckpoint = 0")
    connection.execute(f"pragma synchronous = {'full' if options.synchronous == 'full' else 'normal'}")
    connection.execute(f"pragma cache_size = -{PAGE_CACHE_KIB}")
    connection.execute(f"pragma journal_size_limit = {LOG_LIMIT}")
    return connection


@contextmanager
def _private_files() -> Generator[None]:
    with _umask:
        before = os.umask(0o077)
        try:
            yield
        finally:
            os.umask(before)


def _check_not_emptied(path: Path, turns: Turns) -> None:
    if turns.store_was_here and path.exists() and path.stat().st_size == 0:
        message = (
            f"{path} is empty, but a store has been here: restore it from a backup, or remove it and {path}-turn to "
            "begin afresh"
        )
        raise StoreCorrupt(message)


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that ends within a page: SQLite would read zeros there. With a log, the log has the page."""
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        return
    if path.stat().st_size % int(connection.execute("pragma page_size").fetchone()[0]):
        message = f"{path} is damaged (it ends within a page): restore it from a backup; the file was left as it is"
        raise StoreCorrupt(message)


def _bring_up(connection: sqlite3.Connection, path: Path, options: Options) -> None:
    found = schema_of(connection)
    if found > SCHEMA:
        raise SchemaTooNew(str(path), found, SCHEMA)
    if found == SCHEMA:
        return
    if found == 0 and not options.create:
        message = f"{path} has no Windlass schema, and ?create=no forbids making one"
        raise SchemaMissing(message)
    if found > 0 and not options.migrate:
        message = (
            f"{path} has schema version {found}, this release works with {SCHEMA}: run `windlass migrate`, or add "
            "?migrate=yes to the URL"
        )
        raise SchemaTooOld(message)
    # outside of the transaction: SQLite changes the journal mode only there, and the page size only of an empty file
    connection.execute(f"pragma page_size = {PAGE_SIZE}")
    connection.execute("pragma journal_mode = wal")
    _migrate(connection, range(found + 1, SCHEMA + 1))


def schema_of(connection: sqlite3.Connection) -> int:
    """Return the version of the schema, 0 for none."""
    there = connection.execute("select 1 from sqlite_master where type = 'table' and name = 'windlass_meta'").fetchone()
    if there is None:
        return 0
    row = connection.execute("select value from windlass_meta where name = 'schema'").fetchone()
    return 0 if row is None else int(row[0])


def _migrate(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Run migrations in one transaction: a making that is killed leaves no store of an older schema."""
    connection.execute("begin immediate")
    try:
        for statement in chain.from_iterable(statements(migration(number)) for number in numbers):
            connection.execute(statement)
            reach("sqlite.migrate.after_statement")
        connection.execute(sql("write_version"), {"number": numbers[-1]})
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise


def statements(script: str) -> Iterator[str]:
    """Split a script into its statements."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def script(since: int) -> str:
    """Return the SQL that brings a file whose schema is of version `since` (0: it has none) up by hand."""
    if since == SCHEMA:
        return f"-- The schema is current: version {since}. There is nothing to do.\n"
    parts = [
        f"-- Brings the schema of Windlass from version {since} to version {SCHEMA}: sqlite3 -bail FILE < SCRIPT",
        f"pragma page_size = {PAGE_SIZE};\npragma journal_mode = wal;",
        "begin immediate;",
        *(migration(number).strip() for number in range(since + 1, SCHEMA + 1)),
        f"{sql('write_version').strip().replace(':number', str(SCHEMA))};",
        "commit;",
    ]
    return "\n\n".join(parts) + "\n"


def _set_up(connection: sqlite3.Connection) -> None:
    mode = connection.execute("pragma journal_mode = wal").fetchone()[0]
    if mode != "wal":
        message = f"SQLite cannot use a write-ahead log here (journal mode {mode}): put the file on a local disk"
        raise StoreUnavailable(message)
    # a file that cannot be written is told now, not at the first job; on such a file SQLite begins to read, no more
    connection.execute("begin immediate")
    try:
        connection.execute("update windlass_meta set value = value where name = 'schema'")
    finally:
        connection.execute("rollback")
