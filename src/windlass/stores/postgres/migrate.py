"""Numbered migrations: the schema is made, brought up, or refused.

Each migration is one transaction together with the row that tells its version, so that one that is killed has not
happened. One that is marked as outside a transaction is repeated from its first statement when it was killed; a store
that is being made has nobody to keep waiting, and gets the same in a transaction.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import asyncpg

from windlass.core.errors import SchemaMissing, SchemaTooOld, StoreCorrupt, StoreUnavailable
from windlass.core.failpoint import reach
from windlass.core.migrating import Standing
from windlass.stores.postgres.migration_waits import Waits
from windlass.stores.postgres.migration_watch import Connection, Watched
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.script import is_outside, statements
from windlass.stores.postgres.session import Session, open_session
from windlass.stores.postgres.statements import migration, new_migration, sql

SCHEMA: Final = 4
LOCK_TIMEOUT: Final = "3s"
"""How long a migration waits for a lock, and lets others wait behind it, before it lets them pass and tries again."""
PATIENCE: Final = 60.0
"""For how many seconds an opening store waits for another process that brings the schema up."""
BEFORE_TURN: Final = "postgres.migrate.before_turn"
AFTER_STATEMENT: Final = "postgres.migrate.after_statement"
AFTER_MIGRATION: Final = "postgres.migrate.after_migration"


@dataclass(frozen=True, slots=True)
class Migrations:
    """Where migrations come from: `text` of each number up to `known`, or `anew` for a store that is being made."""

    known: int
    text: Callable[[int], str]
    anew: Callable[[int], str]


OURS: Final = Migrations(SCHEMA, migration, new_migration)


class _Found(NamedTuple):
    schema_there: bool
    version: int | None
    making: int | None

    @property
    def done(self) -> int:
        return self.version or self.making or 0


async def prepare(
    connection: Connection, options: Options, *, migrations: Migrations = OURS, patience: float = PATIENCE
) -> None:
    """Make the schema where there is none, bring an older one up where the URL allows it, refuse every other."""
    standing = await plan(connection, options, migrations=migrations)
    standing.check_not_newer()
    if not standing.pending:
        return
    if standing.found is None and not options.create:
        message = f"{options.where} has no Windlass schema, and ?create=no forbids making one: run `windlass migrate`"
        raise SchemaMissing(message)
    if standing.found is not None and not options.migrate:
        message = (
            f"{options.where} has schema version {standing.found}, this release works with {standing.known}: run "
            "`windlass migrate`, or add ?migrate=yes to the URL"
        )
        raise SchemaTooOld(message)
    await apply(connection, options, migrations=migrations, patience=patience)


async def plan(connection: Connection, options: Options, *, migrations: Migrations = OURS) -> Standing:
    """Tell where the schema stands, and which migrations are to come."""
    watched = Watched(connection, options)
    async with watched.transaction():
        await _set_up(watched, options)
        found = await _found(watched, options)
    version = found.version
    if version is None and found.done >= migrations.known:
        # a newer release has begun to make it, and knows how it goes on
        version = found.done + 1
    return Standing(options.where, version, migrations.known, tuple(range(found.done + 1, migrations.known + 1)))


async def apply(
    connection: Connection, options: Options, *, migrations: Migrations = OURS, patience: float = PATIENCE
) -> None:
    """Run every migration that is to come; of many processes one works at a time, and the others wait for it."""
    watched = Watched(connection, options)
    waits = Waits(watched, options, patience)
    while True:
        standing = await plan(connection, options, migrations=migrations)
        standing.check_not_newer()
        if not standing.pending:
            return
        step = _Step(watched, options, migrations, standing)
        try:
            done = await step.run()
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
            await waits.for_a_lock(step.number, error)
            continue
        if done:
            waits.begin_anew()
        else:
            await waits.for_a_turn()


class _Step:
    """One migration on its way."""

    def __init__(self, connection: Watched, options: Options, migrations: Migrations, standing: Standing) -> None:
        self.number = standing.pending[0]
        self._connection = connection
        self._options = options
        self._last = migrations.known
        self._text = (migrations.anew if standing.found is None else migrations.text)(self.number)

    async def run(self) -> bool:
        """Run it unless somebody else has; return False when another process is at it."""
        return await (self._outside() if is_outside(self._text) else self._inside())

    async def _inside(self) -> bool:
        connection = self._connection
        async with connection.transaction():
            await _set_up(connection, self._options)
            reach(BEFORE_TURN)
            if not await _is_ours("migration_turn", connection, self._options):
                return False
            found = await _found(connection, self._options)
            if found.done + 1 != self.number:
                return True
            if not found.schema_there:
                await connection.fetch("schema_to_make", {"schema": self._options.schema})
                await connection.work(sql("make_schema"))
            await self._run_statements(connection)
            await self._write_version(connection, found)
        reach(AFTER_MIGRATION)
        return True

    async def _outside(self) -> bool:
        # on a connection of its own: what is set on it is for more than one transaction
        session = await open_session(self._options, timeout=self._options.timeout)
        try:
            self._check_direct(session)
            done = await self._alone_outside(Watched(session.connection, self._options))
        except BaseException:
            session.terminate()
            raise
        await session.close()
        return done

    async def _alone_outside(self, connection: Watched) -> bool:
        await _set_up(connection, self._options, local=False)
        if not await _is_ours("migration_turn_outside", connection, self._options):
            return False
        found = await _found(connection, self._options)
        if found.done + 1 == self.number:
            await self._run_statements(connection)
            async with connection.transaction():
                await self._write_version(connection, found)
            reach(AFTER_MIGRATION)
        return True

    def _check_direct(self, session: Session) -> None:
        if session.pooled:
            message = (
                f"migration {self.number} builds an index while work goes on, which cannot be done through a pooler: "
                "run `windlass migrate` with a URL that leads to the database itself"
            )
            raise StoreUnavailable(message)

    async def _run_statements(self, connection: Watched) -> None:
        for statement in statements(self._text):
            await connection.work(statement)
            reach(AFTER_STATEMENT)

    async def _write_version(self, connection: Watched, found: _Found) -> None:
        """Write what is done. A store that is being made has no version before its last migration."""
        making = found.version is None and self.number < self._last
        name = "making" if making else "schema"
        await connection.fetch("write_version", {"name": name, "value": str(self.number)})
        if not making:
            await connection.fetch("forget_making")


async def _set_up(connection: Watched, options: Options, *, local: bool = True) -> None:
    # in each transaction anew: behind a pooler each may be on another connection; what runs outside of one waits for
    # locks without end, since those that it takes stop nobody
    parameters = {"schema": options.schema, "lock_timeout": LOCK_TIMEOUT if local else "0", "local": local}
    await connection.fetch("migration_settings", parameters)


async def _is_ours(turn: str, connection: Watched, options: Options) -> bool:
    [(taken,)] = await connection.fetch(turn, {"schema": options.schema})
    return bool(taken)


async def _found(connection: Watched, options: Options) -> _Found:
    [(there, schema_there)] = await connection.fetch("schema_there", {"schema": options.schema})
    rows = dict(await connection.fetch("schema_version")) if there else {}
    try:
        version, making = (int(rows[name]) if name in rows else None for name in ("schema", "making"))
    except ValueError as error:
        message = (
            f"the table windlass_meta of {options.where} holds a version that is no number: restore it from a backup"
        )
        raise StoreCorrupt(message) from error
    return _Found(schema_there, version, making)
