"""The stores that every behaviour is shown on, each with a place where nothing is yet."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from tests.postgres.cluster import GIVEN, cluster
from tests.postgres.pgbouncer import through_pgbouncer
from tests.postgres.ready import ready_schema
from tests.redis.cluster import new_cluster_url
from tests.redis.keys import with_options
from tests.redis.server import new_url as new_redis_url
from tests.slatedb.engine import begin_engine
from tests.slatedb.s3 import new_bucket_url
from windlass.connect import open_store
from windlass.core.clock import Clock, Rng

if TYPE_CHECKING:
    from windlass.testing.compared import Place

_ASKED_FOR: Final = {
    "WINDLASS_TEST_PGBOUNCER": ("pgbouncer",),
    "WINDLASS_TEST_CLUSTER": ("cluster", "spread"),
    "WINDLASS_TEST_SLATEDB": (
        "slatedb+memory",
        "slatedb+file",
        "slatedb+s3",
        "http+slatedb",
        "http+slatedb+file",
        "http+slatedb+s3",
    ),
}
"""Stores that are asked for by an environment variable, and then run alone: Postgres through PgBouncer, which not
everybody has, Redis as a Cluster, with all keys on one shard or with the queues spread, and all that SlateDB keeps,
each opened here and served over HTTP."""
_ASKED: Final = next((stores for name, stores in _ASKED_FOR.items() if os.environ.get(name)), None)

_BEHIND: Final = {
    "http+memory": "memory",
    "http+sqlite": "sqlite",
    "http+slatedb": "slatedb+memory",
    "http+slatedb+file": "slatedb+file",
    "http+slatedb+s3": "slatedb+s3",
}
SERVED: Final = tuple(_BEHIND)
"""Stores that are served over HTTP."""
VARIANTS: Final = () if _ASKED else ("redis+spread", "slatedb+file", "slatedb+s3", "http+slatedb", "http+sqlite")
"""Stores that differ from others by where jobs are kept, by the names of their keys, or by the way there: tests on them
are marked `variant`."""
ON_REQUEST: Final = ("slatedb+file", "http+slatedb", "http+sqlite")
"""Variants of which each part is in another store: the conformance suite on them is run when it is asked for."""
STORES: Final = _ASKED or ("memory", "sqlite", "postgres", "redis", "slatedb+memory", "http+memory", *VARIANTS)
_numbers: Final = count(1)


@contextmanager
def new_url(store: str, *, with_tables: bool = False) -> Generator[str]:
    """Give the URL of an empty store of this kind, which is gone in the end; see `ready_schema`."""
    if store.startswith("slatedb"):
        begin_engine()
    match store:
        case "memory":
            yield "memory://"
        case "sqlite":
            with TemporaryDirectory() as folder:
                yield f"sqlite:///{Path(folder).resolve()}/jobs.db"
        case "postgres":
            with ready_schema(with_tables=with_tables) as url:
                yield url
        case "redis":
            with new_redis_url() as url:
                yield url
        case "redis+spread":
            with new_redis_url() as url:
                yield with_options(url, "spread=queues")
        case "slatedb+memory":
            yield f"slatedb+memory://test-{next(_numbers)}"
        case "slatedb+file":
            with TemporaryDirectory() as folder:
                yield f"slatedb+file://{Path(folder).resolve()}/jobs"
        case "slatedb+s3":
            # a bucket that costs nothing is written to as often as a test has something to write
            with new_bucket_url(flush="0") as url:
                yield url
        case _ if store in SERVED:
            # loaded where it is asked for: not everybody who has stores has what serves them
            from tests.http.in_thread import served_in_thread

            with new_url(behind(store)) as url, served_in_thread(url) as front:
                yield front
        case "cluster" | "spread":
            with new_cluster_url(spread=store == "spread") as url:
                yield url
        case _:
            with ready_schema(with_tables=with_tables) as url:
                yield through_pgbouncer(url)


@contextmanager
def new_place(store: str) -> Generator["Place"]:
    """Give what makes stores on the same jobs, empty at first, by the time and the chance that each is given."""
    if store not in SERVED:
        with new_url(store) as url:
            yield lambda clock, rng: open_store(url, clock=clock, rng=rng)
        return
    from tests.http.in_process import InProcess, OwnServingSide

    with new_url(behind(store)) as url:
        made: list[InProcess] = []

        def door(clock: Clock, rng: Rng) -> Any:  # noqa: ANN401 - a store that has whatever another one has
            if not made:
                made.append(InProcess(url, clock=clock, rng=rng))
            return OwnServingSide(made[0])

        yield door


def behind(store: str) -> str:
    """Return what is served."""
    return _BEHIND.get(store, store)


def sessions_of(store: str) -> set[int]:
    """Return the sessions that a Postgres serves to this process, of those that should end when a store is closed."""
    # a given server has one database for all processes: nobody knows whose a session is
    if store not in {"postgres", "pgbouncer"} or GIVEN:
        return set()
    # PgBouncer keeps sessions for its next client, but none in a transaction
    return cluster().sessions() if store == "postgres" else cluster().busy_sessions()
