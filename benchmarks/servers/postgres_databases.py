"""A database for each folder that a measurement is given, made when it is asked for and dropped with the folder.

The folder keeps the URLs of its databases in files, so that all processes of a measurement find the same ones. The
server is named in the environment, and spoken to by `psql`: what is measured loads no driver that is not its own.
"""

import os
from pathlib import Path
from uuid import uuid4

from benchmarks.servers.postgres_cluster import Cluster

PROGRAMS = "BENCH_POSTGRES_PROGRAMS"
PORT = "BENCH_POSTGRES_PORT"
MAIN = "main"
SUFFIX = ".postgres-url"


def announce(cluster: Cluster) -> None:
    """Let this process and all that it starts use the server."""
    os.environ[PROGRAMS] = str(cluster.programs)
    os.environ[PORT] = str(cluster.port)


def announced() -> Cluster:
    """Return the server; raises `ImportError` when there is none, so that a contestant counts as missing."""
    if PORT not in os.environ:
        raise ImportError("it needs a Postgres server: run with --store postgres")
    return Cluster(Path(os.environ[PROGRAMS]), int(os.environ[PORT]))


def url_of(folder: Path, name: str = MAIN) -> str:
    """Return the URL of a folder's database; an empty one is made at the first call."""
    known = folder / f"{name}{SUFFIX}"
    if not known.exists():
        cluster = announced()
        database = f"bench_{uuid4().hex}"
        cluster.ask(f"create database {database}")
        known.write_text(cluster.url(database))
    return known.read_text()


def analyze_all(folder: Path) -> None:
    """Let the server know what is in the databases of a folder, as its autovacuum does within a minute."""
    for known in folder.glob(f"*{SUFFIX}"):
        announced().ask("analyze", known.read_text().rpartition("/")[2])


def drop_all(folder: Path) -> None:
    """Drop the databases of a folder, also from under a process that was killed and still seems connected."""
    for known in folder.glob(f"*{SUFFIX}"):
        database = known.read_text().rpartition("/")[2]
        announced().ask(f"drop database if exists {database} with (force)")
        known.unlink()


def durability(folder: Path) -> str:
    """Say what a commit survives on this server."""
    del folder
    cluster = announced()
    synced = cluster.ask("show fsync") == "on" and cluster.ask("show synchronous_commit") == "on"
    return "synced" if synced else "not synced"
