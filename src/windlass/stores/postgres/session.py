"""One connection to the server, and what we know of it."""

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import AsyncGenerator, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from operator import attrgetter
from typing import Any, Final, TypeVar, cast

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from windlass.core.errors import StoreReadOnly
from windlass.kit.deadline import Deadline
from windlass.stores.postgres.certificates import check_files
from windlass.stores.postgres.faults import sqlstate
from windlass.stores.postgres.hosts import Host, driver_chooses_host, hosts_of, needs_writes
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.password_file import password_of
from windlass.stores.postgres.settings import NOTICE_GONE, application_name, local_settings, startup_settings
from windlass.stores.postgres.statements import statement
from windlass.stores.postgres.timestamps import read_any_timestamp
from windlass.stores.postgres.work import NONE, Parameters, Rows

logger = logging.getLogger("windlass.postgres")

T = TypeVar("T")

_CLOSE_WITHIN: Final = 2.0
_STATEMENTS: Final = 500
_BEGIN: Final = "begin isolation level read committed"
_BEGIN_LOOK: Final = "begin isolation level repeatable read read only"
_PROTOCOL_VIOLATION: Final = "08P01"
_transport: Final = attrgetter("_transport")
_numbers: Final = itertools.count(1)
_abandoned: Final[list["asyncpg.Connection[asyncpg.Record]"]] = []
_last_good: Final[dict[str, Host]] = {}


class Session:
    """One asyncpg connection; `pooled` when a pooler may give every transaction to another server process.

    A connection whose statement was left alone, by cancellation or at a deadline, is `broken` and must be terminated:
    the reply that is still to come would be read by the next caller.
    """

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]", options: Options, *, pooled: bool) -> None:
        """Own `connection` from now on."""
        self.pooled = pooled
        self.number = next(_numbers)
        self.idle_since = 0.0
        self.connection = connection
        self.pid = connection.get_server_pid()
        """The server process that is ours, or what a pooler gave out as such."""
        self._options = options
        self._server = connection.get_settings()
        self._took_writes = needs_writes(options.dsn) and not _says_read_only(self._server)
        self.deadline = Deadline(self._give_up)
        """When the connection is cut off if no answer has come: `TimeoutError`."""
        self._late = False
        self._under_way = False
        self._in_transaction = False

    @property
    def closed(self) -> bool:
        """Whether the connection is gone."""
        return self.connection.is_closed()

    @property
    def broken(self) -> bool:
        """Whether nobody may use it again: it is gone, or a statement or a transaction was left alone."""
        return self._under_way or self._in_transaction or self.connection.is_closed()

    @property
    def outdated(self) -> bool:
        """Whether the server has refused writes since this was opened, as an old primary does that was not restarted.

        The server says so beside its next answer, to a look too and to whom the connection was lent: that answer is the
        last one to be had from here.
        """
        return self._took_writes and _says_read_only(self._server)

    def fetch(self, name: str, parameters: Parameters = NONE) -> Coroutine[Any, Any, Rows]:
        """Run `sql/<name>.sql` and return its rows; behind a pooler in a transaction of its own, if there is none."""
        if self.pooled and not self._in_transaction:
            return self._fetch_whole(name, parameters)
        return self._fetch(name, parameters)

    async def many(self, name: str, rows: Sequence[Parameters]) -> Rows:
        """Run `sql/<name>.sql` once for each of `rows`, all or none; that gives no rows."""
        if self.pooled and not self._in_transaction:
            async with self.transaction():
                await self._many(name, rows)
        else:
            await self._many(name, rows)
        return ()

    async def script(self, text: str) -> None:
        """Run statements without parameters, one after the other."""
        await self._execute(text)

    @asynccontextmanager
    async def transaction(self, *, look: bool = False, timeout: float | None = None) -> AsyncGenerator[None]:
        """Commit what is done within, or roll it back when it raises; see `begin`."""
        await self.begin(look=look, timeout=timeout)
        try:
            yield
        except BaseException:
            await self.roll_back()
            raise
        await self.commit()

    async def begin(self, *, look: bool = False, timeout: float | None = None) -> None:
        """Begin a transaction; with `look` one that only reads, and sees one moment.

        With a `timeout` the server gives up after that time and not after the options' own.
        """
        await self._execute(_BEGIN_LOOK if look else _BEGIN)
        self._in_transaction = True
        if self.pooled or timeout is not None:
            await self._fetch("settings", local_settings(self._options, timeout or self._options.timeout, local=True))

    async def commit(self) -> None:
        """Commit the transaction; if this raises, it may or may not have been done."""
        ended = await self._execute("commit")
        self._in_transaction = False
        if ended != "COMMIT":
            # a statement of it had failed, and somebody went on as if it had not
            raise asyncpg.InFailedSQLTransactionError("the transaction was rolled back and not committed")

    async def roll_back(self) -> None:
        """Roll the transaction back, unless the connection is in no state for it: then it must be terminated."""
        if self._in_transaction and not self._under_way and not self.closed:
            await self._execute("rollback")
            self._in_transaction = False

    async def close(self) -> None:
        """Take leave of the server."""
        if self._under_way:
            self.terminate()
            return
        self.deadline.close()
        try:
            await self.connection.close(timeout=_CLOSE_WITHIN)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            # asyncpg has cut it off then
            logger.debug("a connection did not close in order", exc_info=True)

    def terminate(self) -> None:
        """Cut the connection off at once; what is under way on it may or may not be done."""
        self.deadline.close()
        self.connection.terminate()

    def abandon(self) -> None:
        """Let go of a connection that belongs to the parent process, in its forked child: nothing is sent."""
        theirs = _transport(self.connection).get_extra_info("socket")
        if theirs is not None and theirs.fileno() >= 0:
            # Another socket, that leads nowhere, takes its number: what the driver may still write when the interpreter
            # tears everything down goes there, and no file that is opened later is taken for the connection.
            ours, nobody = socket.socketpair()
            with ours, nobody:
                os.dup2(ours.fileno(), theirs.fileno(), inheritable=False)
        _abandoned.append(self.connection)

    async def _fetch_whole(self, name: str, parameters: Parameters) -> Rows:
        async with self.transaction():
            return await self._fetch(name, parameters)

    def _fetch(self, name: str, parameters: Parameters) -> Coroutine[Any, Any, Rows]:
        text, values = statement(name)
        return self._answer(cast("Coroutine[Any, Any, Rows]", self.connection.fetch(text, *values(parameters))))

    async def _many(self, name: str, rows: Sequence[Parameters]) -> None:
        text, values = statement(name)
        await self._answer(self.connection.executemany(text, [values(row) for row in rows]))

    async def _execute(self, text: str) -> str:
        return await self._answer(self.connection.execute(text))

    async def _answer(self, statement: Coroutine[Any, Any, T]) -> T:
        """Wait for the server's answer; if this is left without one, the session is broken."""
        self._under_way = True
        try:
            answer = await statement
        except Exception as error:
            if self._late:
                raise TimeoutError from None
            if isinstance(error, asyncpg.PostgresError):
                # an answer too: nothing is still to come
                self._under_way = False
            elif isinstance(error, AttributeError) and self.closed:
                # the driver does not expect that somebody else cuts the connection off
                raise ConnectionAbortedError("the connection was cut off") from None
            raise
        self._under_way = False
        return answer

    def _give_up(self) -> None:
        self._late = True
        self.terminate()


async def open_session(options: Options, *, timeout: float) -> Session:
    """Connect to the server of `options` that takes writes, within `timeout` seconds.

    Raises what the driver raises, and `StoreReadOnly` when there are only servers that take no writes.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    good = _last_good.get(options.dsn)
    hosts = sorted(hosts_of(options.dsn), key=lambda host: host != good)
    refused: asyncpg.InvalidPasswordError | None = None
    for left in range(len(hosts) - 1, 0, -1):
        host = hosts[len(hosts) - 1 - left]
        try:
            # a server that does not answer at all must not use up the time of those behind it
            return await _open_at(options, host, (deadline - loop.time()) / (left + 1))
        except (OSError, asyncpg.PostgresError, asyncpg.TargetServerAttributeNotMatched, StoreReadOnly) as error:
            logger.debug("no connection to %s at %s: %s", options.where, host, error)
            if isinstance(error, asyncpg.InvalidPasswordError):
                refused = error
    try:
        return await _open_at(options, hosts[-1], deadline - loop.time())
    except (OSError, asyncpg.PostgresError, asyncpg.TargetServerAttributeNotMatched, StoreReadOnly):
        # it is the same on all servers of a cluster: that another one cannot be reached now is not what is wrong
        if refused is not None:
            raise refused from None
        raise


async def _open_at(options: Options, host: Host, timeout: float) -> Session:
    async with asyncio.timeout(timeout):
        session = await _direct(options, host) or await _pooled(options, host)
    _last_good[options.dsn] = host
    return session


async def _direct(options: Options, host: Host) -> Session | None:
    """Connect to a server process that is ours alone; None if a pooler is in between."""
    if options.pooler == "transaction":
        return None
    try:
        connection = await _connect_for_long(options, host, startup_settings(options))
    except asyncpg.PostgresError as error:
        if not _is_refused_setting(error):
            raise
        return await _set_up_later(options, host) if options.pooler == "none" else None
    session = Session(connection, options, pooled=False)
    if await _is_ours(session, options) or options.pooler == "none":
        return session
    await session.close()
    return None


async def _connect_for_long(
    options: Options, host: Host, settings: dict[str, str]
) -> "asyncpg.Connection[asyncpg.Record]":
    try:
        return await _connect(options, host, settings, _STATEMENTS)
    except asyncpg.InvalidParameterValueError:
        return await _connect(options, host, {**settings, NOTICE_GONE: "0"}, _STATEMENTS)


async def _set_up_later(options: Options, host: Host) -> Session:
    """Connect through a pooler that keeps a server process for us: it took no settings at the start, but keeps them."""
    connection = await _connect(options, host, {"application_name": application_name(options)}, _STATEMENTS)
    session = Session(connection, options, pooled=False)
    with _kept(session):
        await session.fetch("settings", local_settings(options, options.timeout, local=False))
    await _is_ours(session, options)
    return session


async def _pooled(options: Options, host: Host) -> Session:
    connection = await _connect(options, host, {"application_name": application_name(options)}, 0)
    session = Session(connection, options, pooled=True)
    await _is_ours(session, options)
    return session


async def _connect(
    options: Options, host: Host, settings: dict[str, str], statements: int
) -> "asyncpg.Connection[asyncpg.Record]":
    try:
        return await asyncpg.connect(
            options.dsn,
            host=host.name,
            port=host.port,
            password=password_of(options.dsn, host),
            server_settings=settings,
            statement_cache_size=statements,
            max_cached_statement_lifetime=0,
            max_cacheable_statement_size=0,
            target_session_attrs=SessionAttribute.read_write if driver_chooses_host(options.dsn) else None,
        )
    except OSError:
        check_files(options)
        raise


async def _is_ours(session: Session, options: Options) -> bool:
    """Look whether the server process is the one that greeted us, with our settings; refuse one without writes."""
    with _kept(session):
        await session.begin()
        # without a name: behind a pooler one that is given now would be unknown, or taken, in the next transaction
        probe = await session.connection.prepare(statement("probe").text, name="")
        [(pid, settled, read_only)] = await probe.fetch()
        if not options.lent:
            # in a transaction, since an older driver looks the type up; what is lent reads as its user expects
            await read_any_timestamp(session.connection)
        await session.roll_back()
        if read_only and needs_writes(options.dsn):
            raise StoreReadOnly(
                f"{options.where} takes no writes: it is a standby, or this role may only read; name the primary in "
                "the URL, or all servers parted by commas",
                retryable=True,
            )
    return bool(settled) and pid == session.pid


def _says_read_only(server: object) -> bool:
    """Return what the server has told last; a pooler may have told it long ago, so only a change of it counts."""
    return getattr(server, "default_transaction_read_only", "off") == "on"


@contextmanager
def _kept(session: Session) -> Generator[None]:
    """Cut the connection off when it turns out to be of no use."""
    try:
        yield
    except BaseException:
        session.terminate()
        raise


def _is_refused_setting(error: asyncpg.PostgresError) -> bool:
    return sqlstate(error) == _PROTOCOL_VIOLATION and "startup parameter" in str(error)
