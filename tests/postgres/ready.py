"""Schemas that hold the tables of a store, for many tests one after another.

Making the tables and dropping them takes longer than most tests: here they are made once and emptied after each. Who
made them owns them; who works with them is a role that has the rights that the page on migrations lists, and no other.
"""

import asyncio
import atexit
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, LiteralString

from psycopg import sql

from tests.postgres.cluster import GIVEN, Cluster, cluster, schema_of
from tests.postgres.rights import IN_SCHEMA, renamed
from tests.postgres.roles import as_role, user_of
from windlass.connect import open_store

_free: Final[list[tuple[str, sql.Composed]]] = []


@contextmanager
def ready_schema(*, with_tables: bool = False, unused: bool = False) -> Generator[str]:
    """Give the URL of a store that another role has just made; see `Cluster.runs_as` and `as_owner`.

    With `with_tables` who works may also make tables beside those of the store, as handlers do here that write to some.
    With `unused` the tables had no rows before: those of deleted rows take room, which the planner counts.
    """
    url, emptying = _free.pop() if _free and not unused else _made()
    if with_tables:
        _let_create(url, "grant create on schema {} to {}")
    yield url
    # one of a test that failed is not used again, nor dropped: somebody may still hold it
    cluster().run(emptying)
    if with_tables:
        _let_create(url, "revoke create on schema {} from {}")
    _free.append((url, emptying))


def _made() -> tuple[str, sql.Composed]:
    here = cluster()
    url = here.new_schema()
    if GIVEN:
        # a server that does not end with the run is left as it was found
        atexit.register(here.drop_schema, url)
    with ThreadPoolExecutor(1) as aside:
        # a loop of its own: whoever asks may be inside of one
        aside.submit(asyncio.run, _open_and_close(url)).result()
    return _given_away(here, url), emptying(here, schema_of(url))


def _given_away(here: Cluster, url: str) -> str:
    """Give the rights in a schema to the role that works, and return the URL for it."""
    if here.runs_as is None:
        return url
    rights = renamed(IN_SCHEMA, {"jobs": schema_of(url), "windlass_run": user_of(here.runs_as)})
    here.run(rights.encode())
    return as_role(url, here.runs_as)


def _let_create(url: str, how: LiteralString) -> None:
    if (login := cluster().runs_as) is not None:
        cluster().run(sql.SQL(how).format(sql.Identifier(schema_of(url)), sql.Identifier(user_of(login))))


async def _open_and_close(url: str) -> None:
    store = open_store(url)
    await store.open()
    await store.close()


def emptying(here: Cluster, schema: str) -> sql.Composed:
    """Return what brings every table and sequence of `schema` back to what it holds now."""
    tables = [name for (name,) in here.run("select tablename from pg_tables where schemaname = %s", [schema])]
    steps = [sql.SQL("delete from {}").format(sql.Identifier(schema, name)) for name in tables]
    for name in tables:
        table, copy = sql.Identifier(schema, name), sql.Identifier(schema, f"kept_{name}")
        if here.run(sql.SQL("select 1 from {} limit 1").format(table)):
            here.run(sql.SQL("create table {} as table {}").format(copy, table))
            steps.append(sql.SQL("insert into {} overriding system value table {}").format(table, copy))
    sequences = here.run(
        "select format('%%I.%%I', schemaname, sequencename), coalesce(last_value, start_value), last_value is not null"
        " from pg_sequences where schemaname = %s",
        [schema],
    )
    steps += [sql.SQL("select setval({}, {}, {})").format(*map(sql.Literal, sequence)) for sequence in sequences]
    return sql.SQL(";\n").join(steps)
