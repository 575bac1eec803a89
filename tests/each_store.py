"""The stores that every behaviour is shown on, each with a place where nothing is yet."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.postgres.cluster import GIVEN, cluster
from tests.postgres.pgbouncer import through_pgbouncer
from tests.postgres.ready import ready_schema

STORES: Final = ("pgbouncer",) if os.environ.get("WINDLASS_TEST_PGBOUNCER") else ("memory", "sqlite", "postgres")
"""Postgres through PgBouncer is asked for, and then alone: not everybody has it."""


@contextmanager
def new_url(store: str, *, with_tables: bool = False) -> Generator[str]:
    """Give the URL of an empty store of this kind, which is gone in the end; see `ready_schema`."""
    match store:
        case "memory":
            yield "memory://"
        case "sqlite":
            with TemporaryDirectory() as folder:
                yield f"sqlite:///{Path(folder).resolve()}/jobs.db"
        case "postgres":
            with ready_schema(with_tables=with_tables) as url:
                yield url
        case _:
            with ready_schema(with_tables=with_tables) as url:
                yield through_pgbouncer(url)


def sessions_of(store: str) -> set[int]:
    """Return the sessions that a Postgres serves to this process, of those that should end when a store is closed."""
    # a given server has one database for all processes: nobody knows whose a session is
    if store not in {"postgres", "pgbouncer"} or GIVEN:
        return set()
    # PgBouncer keeps sessions for its next client, but none in a transaction
    return cluster().sessions() if store == "postgres" else cluster().busy_sessions()
