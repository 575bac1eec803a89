"""The stores that a campaign can happen on: a file, or a server that is started for it alone."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from proofs.fleet.database import PostgresDatabase, RedisClusterDatabase, RedisDatabase
from proofs.report import Report
from proofs.serving import SQLITE, Place
from tests.postgres.private import DURABLE, PrivateCluster
from tests.redis import private as redis
from tests.redis import private_cluster as redis_cluster

Kind: TypeAlias = Literal["sqlite", "postgres"]


@contextmanager
def place_on(store: Kind, folder: Path) -> Generator[Place]:
    """Give a place for a campaign on one of the stores."""
    if store == "sqlite":
        yield Place.within(folder)
        return
    with durable_postgres() as cluster:
        yield Place(cluster.url, folder / "ledger")


@contextmanager
def durable_postgres() -> Generator[PrivateCluster]:
    """Give a Postgres that keeps what it has committed, whatever is done to it; it ends with the block."""
    with PrivateCluster(conf=DURABLE) as cluster:
        yield cluster


@contextmanager
def postgres_database() -> Generator[PostgresDatabase]:
    """Give such a Postgres as a database to which things are done."""
    with durable_postgres() as cluster:
        yield PostgresDatabase(cluster)


@contextmanager
def redis_database() -> Generator[RedisDatabase]:
    """Give a Redis that keeps what it has acknowledged, as a database to which things are done."""
    with redis.PrivateRedis(conf=redis.DURABLE) as private:
        yield RedisDatabase(private)


@contextmanager
def redis_cluster_database(*, spread: bool) -> Generator[RedisClusterDatabase]:
    """Give three masters of a Cluster that keep what they have acknowledged, with all on one of them or spread."""
    with redis_cluster.PrivateCluster(conf=redis.DURABLE) as cluster:
        yield RedisClusterDatabase(cluster, spread=spread)


def name_store(report: Report, place: Place) -> None:
    """Let the report say what the campaign ran on."""
    if not place.url.startswith(SQLITE):
        report.store = place.fleet_reader.version()
