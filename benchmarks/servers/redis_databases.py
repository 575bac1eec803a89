"""A database for each folder that a measurement is given, taken when it is asked for and emptied with the folder.

The folder keeps its number in a file, so that all processes of a measurement find the same one. The server is named in
the environment.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.servers.redis_server import PATIENCE, Server

PORT = "BENCH_REDIS_PORT"
KNOWN = "redis-database"
LAST = "last-database"
"""The key, in a database that no measurement gets, of the number given last."""
LOOK_EVERY = 0.01


def announce(server: Server) -> None:
    """Let this process and all that it starts use the server."""
    os.environ[PORT] = str(server.port)


def announced() -> Server:
    """Return the server; raises `ImportError` when there is none, so that a contestant counts as missing."""
    if PORT not in os.environ:
        raise ImportError("it needs a Redis server: run with --store redis")
    return Server(int(os.environ[PORT]))


def url_of(folder: Path) -> str:
    """Return the URL of a folder's database; an empty one is taken at the first call."""
    known = folder / KNOWN
    if not known.exists():
        [number] = announced().ask(f"INCR {LAST}")
        known.write_text(number)
    return announced().url(int(known.read_text()))


def empty(folder: Path) -> None:
    """Empty the database of a folder and shorten the log, which the server does not do by itself."""
    known = folder / KNOWN
    if known.exists():
        server = announced()
        server.ask("FLUSHDB SYNC", int(known.read_text()))
        _shorten_log(server)
        known.unlink()


def _shorten_log(server: Server) -> None:
    server.ask("BGREWRITEAOF")
    until = time.monotonic() + PATIENCE
    while _is_shortening(server.told()):
        if time.monotonic() > until:
            message = "the server did not shorten its log in time"
            raise RuntimeError(message)
        time.sleep(LOOK_EVERY)


def _is_shortening(told: Mapping[str, str]) -> bool:
    return "1" in {told["aof_rewrite_in_progress"], told["aof_rewrite_scheduled"]}


def durability(folder: Path) -> str:
    """Say what a write survives on this server."""
    del folder
    server = announced()
    if server.setting("appendonly") != "yes":
        return "lives with the server"
    return f"AOF {server.setting('appendfsync')}"
