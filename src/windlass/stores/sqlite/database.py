"""Opening the file: connections, settings, schema."""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, Literal, TypeVar
from urllib.parse import quote

from windlass.core.errors import SchemaMissing, SchemaTooNew, SchemaTooOld, StoreCorrupt, StoreUnavailable
from windlass.core.failpoint import reach
from windlass.stores.sqlite.faults import not_a_database, translate
from windlass.stores.sqlite.statements import migration, sql
from windlass.stores.sqlite.turns import GIVE_UP_AFTER, WARN_AFTER, Turns

logger = logging.getLogger("windlass.sqlite")

SCHEMA: Final = 5
PAGE_CACHE_KIB: Final = 8_192
PAGE_SIZE: Final = 2_048
"""Of a file that we make: a lone commit writes four pages, and half of each costs less."""
LOG_LIMIT: Final = 64 * 1024 * 1024
_TRY_EVERY: Final = 0.005
_LOCKED: Final = (
    "another connection holds SQLite's write lock, most likely a transaction of your own that was left open (pass "
    "connection= to write inside it, and commit it soon)"
)
_umask = threading.Lock()

C = TypeVar("C", bound=sqlite3.Connection)
T = TypeVar("T")


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

    What is not a database, damaged, or of a newer release is refused before anything is written. A file that has the
    schema is opened without the turn and without SQLite's write lock: another connection may hold them for long.
    """
    check_not_emptied(path, turns)
    connection = connect(path, options)
    try:
        _check_whole(connection, path)
        if not _is_prepared(connection, path, options):
            _prepare(connection, path, options, turns)
        _check_writable(connection, turns)
    except BaseException:
        connection.close()
        raise
    turns.mark_store()
    return connection


def is_prepared(path: Path) -> bool:
    """Whether a store can be opened at `path` without the write lock; a file that cannot be read now counts as not.

    A schema that another connection has not committed yet is not visible here, and does not count.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=0)) as connection:
            return schema_of(connection) == SCHEMA and _journal_mode(connection) == "wal"
    except sqlite3.Error:
        return False


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
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=factory,
        )
        try:
            # SQLite opens the file at its first query. A lock of another connection is waited for below, and not while
            # the umask of the whole process is changed
            with _ignored_when_busy():
                _check_readable(connection)
        except BaseException:
            connection.close()
            raise
    try:
        connection.execute(f"pragma busy_timeout = {GIVE_UP_AFTER * 1000:.0f}")
        _check_readable(connection)
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


def _check_readable(connection: sqlite3.Connection) -> None:
    """Raise an error for a file that is no database."""
    connection.execute("select count(*) from sqlite_master").fetchone()


@contextmanager
def _ignored_when_busy() -> Generator[None]:
    """Suppress the error for a lock that another connection holds."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds a lock that the statement needed."""
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def check_not_emptied(path: Path, turns: Turns) -> None:
    """Refuse an empty file where a store has been: its jobs are lost, and a new store would hide that."""
    if turns.store_was_here and path.exists() and path.stat().st_size == 0:
        message = (
            f"{path} is empty, but a store has been here: restore it from a backup, or remove it and {path}-turn to "
            "begin afresh"
        )
        raise StoreCorrupt(message)


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that ends within a page: SQLite would read zeros there. With a log, the log has the page."""
    # the size first: other processes may write meanwhile, and only then the page size is that of what was measured
    size = path.stat().st_size
    _check_readable(connection)
    with suppress(FileNotFoundError):
        if Path(f"{path}-wal").stat().st_size:
            return
    if size % int(connection.execute("pragma page_size").fetchone()[0]):
        message = f"{path} is damaged (it ends within a page): restore it from a backup; the file was left as it is"
        raise StoreCorrupt(message)


def _is_prepared(connection: sqlite3.Connection, path: Path, options: Options) -> bool:
    return not _pending(schema_of(connection), path, options) and _journal_mode(connection) == "wal"


def _prepare(connection: sqlite3.Connection, path: Path, options: Options, turns: Turns) -> None:
    """Make the schema, or bring it up, and switch to a write-ahead log: in our turn, after every other writer."""
    turns.take_in_time(path)
    try:
        check_not_emptied(path, turns)
        if _pending(schema_of(connection), path, options):
            # outside of the transaction: SQLite changes the page size only of an empty file
            connection.execute(f"pragma page_size = {PAGE_SIZE}")
        mode = _when_free(path, lambda: connection.execute("pragma journal_mode = wal").fetchone()[0])
        if mode != "wal":
            message = f"SQLite cannot use a write-ahead log here (journal mode {mode}): put the file on a local disk"
            raise StoreUnavailable(message)
        _when_free(path, lambda: connection.execute("begin immediate"))
        try:
            bring_up(connection, path, options)
            connection.execute("commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise
    finally:
        turns.give()


def _when_free(path: Path, statement: Callable[[], T]) -> T:
    """Return what `statement` returns; while another connection holds the write lock, wait, but not for ever."""
    began = time.monotonic()
    warned = False
    while True:
        try:
            return statement()
        except sqlite3.OperationalError as error:
            waited = time.monotonic() - began
            if not is_busy(error):
                raise
            if waited >= GIVE_UP_AFTER:
                message = f"{path} could not be made a store in {waited:.0f} s: {_LOCKED}"
                raise StoreUnavailable(message, retryable=True) from error
            if waited >= WARN_AFTER and not warned:
                warned = True
                logger.warning("%s waits since %.0f s to be made a store: %s", path, waited, _LOCKED)
            time.sleep(_TRY_EVERY)


def bring_up(connection: sqlite3.Connection | sqlite3.Cursor, path: Path, options: Options) -> None:
    """Make the schema, or bring it up, in the transaction that is open; refuse where `options` forbid it.

    All of it commits or rolls back with that transaction: a making that is killed leaves no store of an older schema.
    """
    numbers = _pending(schema_of(connection), path, options)
    for statement in chain.from_iterable(statements(migration(number)) for number in numbers):
        connection.execute(statement)
        reach("sqlite.migrate.after_statement")
    if numbers:
        connection.execute(sql("write_version"), {"version": numbers[-1]})


def bring_up_within(cursor: sqlite3.Cursor, path: Path, options: Options) -> None:
    """Make the schema, or bring it up, in a caller's own transaction on `cursor`; nothing is done when it is there."""
    if schema_of(cursor) == 0:
        try:
            with closing(Turns(path)) as turns:
                check_not_emptied(path, turns)
        except OSError as error:
            raise translate(error, path) from error
    bring_up(cursor, path, options)


def _pending(found: int, path: Path, options: Options) -> range:
    """Return the numbers of the migrations that are to come; refuse a schema that `options` do not let us bring up."""
    if found > SCHEMA:
        raise SchemaTooNew(str(path), found, SCHEMA)
    if found == SCHEMA:
        return range(0)
    if found == 0 and not options.create:
        message = f"{path} has no Windlass schema, and ?create=no forbids making one"
        raise SchemaMissing(message)
    if found > 0 and not options.migrate:
        message = (
            f"{path} has schema version {found}, this release works with {SCHEMA}: run `windlass migrate`, or add "
            "?migrate=yes to the URL"
        )
        raise SchemaTooOld(message)
    return range(found + 1, SCHEMA + 1)


def _journal_mode(connection: sqlite3.Connection) -> str:
    return str(connection.execute("pragma journal_mode").fetchone()[0])


def schema_of(connection: sqlite3.Connection | sqlite3.Cursor) -> int:
    """Return the version of the schema, 0 for none."""
    there = connection.execute("select 1 from sqlite_master where type = 'table' and name = 'windlass_meta'").fetchone()
    if there is None:
        return 0
    row = connection.execute("select value from windlass_meta where name = 'schema'").fetchone()
    return 0 if row is None else int(row[0])


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
        f"{sql('write_version').strip().replace(':version', str(SCHEMA))};",
        "commit;",
    ]
    return "\n\n".join(parts) + "\n"


def _check_writable(connection: sqlite3.Connection, turns: Turns) -> None:
    """Raise an error for a file that cannot be written: now, not at the first job.

    While another connection writes there is nothing to check. On a file that is read-only SQLite begins a transaction
    that can only read, and refuses the first write.
    """
    if not turns.take_now():
        return
    try:
        connection.execute("pragma busy_timeout = 0")
        with _ignored_when_busy():
            connection.execute("begin immediate")
            try:
                connection.execute("update windlass_meta set value = value where name = 'schema'")
            finally:
                connection.execute("rollback")
    finally:
        turns.give()
