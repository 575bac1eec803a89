"""Where a measurement's folder keeps its store: the one thing in which our contestants on different stores differ."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.servers import http_serving, postgres_databases, redis_databases

Url = Callable[[Path, str], str]
"""Returns the URL of the store of this name that belongs to a folder, every option at its default but
what parts the stores of one folder."""

MAIN = postgres_databases.MAIN
CROWDED = "crowded"
EMPTY = "empty"


def sqlite_url(folder: Path, name: str) -> str:
    """Return the URL of a file in the folder."""
    return f"sqlite:///{folder / name}.db"


def memory_url(folder: Path, name: str) -> str:
    """Return the URL of a store of its own in memory."""
    del folder, name
    return "memory://"


def postgres_url(folder: Path, name: str) -> str:
    """Return the URL of a database of the folder's own."""
    return postgres_databases.url_of(folder, name)


def redis_url(folder: Path, name: str) -> str:
    """Return the URL of the folder's own database; a prefix parts its stores."""
    return f"{redis_databases.url_of(folder)}?prefix={name}"


def slatedb_url(folder: Path, name: str) -> str:
    """Return the URL of a database in a folder of its own below the folder."""
    return f"slatedb+file://{folder / name}"


def http_url(folder: Path, name: str) -> str:
    """Return the URL of a process that serves a file in the folder."""
    return http_serving.serving(folder, name).url
