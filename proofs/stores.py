"""The stores that a campaign can happen on: a file, or a Postgres that is started for it alone."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from proofs.postgres_reader import PostgresReader
from proofs.report import Report
from proofs.serving import Place
from tests.postgres.private import DURABLE, PrivateCluster

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


def name_store(report: Report, place: Place) -> None:
    """Let the report say what the campaign ran on."""
    reader = place.reader
    if isinstance(reader, PostgresReader):
        [(version,)] = reader.rows("show server_version")
        [(fsync,)] = reader.rows("show fsync")
        report.store = f"Postgres {version} with fsync {fsync}"
