"""What `doctor` looks at in a SQLite store."""

import sqlite3
from pathlib import Path

from windlass.core.looks import Finding
from windlass.kit.moves.looking import of_move
from windlass.stores.sqlite.database import SCHEMA, Options
from windlass.stores.sqlite.store_move_queries import moved_to

RESET_BUG_FIXED = (3, 51, 3)


def check(cursor: sqlite3.Cursor, path: Path, options: Options) -> list[Finding]:
    """Look over the library, the settings and the file."""
    return [
        _library(),
        _durability(options),
        _log(path),
        _schema(cursor),
        _integrity(cursor),
        *of_move(moved_to(cursor)),
    ]


def _library() -> Finding:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info >= RESET_BUG_FIXED:
        return Finding("library", "ok", f"SQLite {version}")
    return Finding(
        "library",
        "ok",
        f"SQLite {version} has the WAL-reset bug; Windlass checkpoints so that it cannot meet it",
        "execute `pragma wal_autocheckpoint = 0` on connections of your own to this file",
    )


def _durability(options: Options) -> Finding:
    if options.synchronous == "full":
        return Finding("durability", "ok", "synchronous=full: what was acknowledged survives a power cut")
    return Finding(
        "durability",
        "warning",
        "synchronous=normal: the last commits before a power cut may be lost",
        "leave synchronous out of the URL",
    )


def _log(path: Path) -> Finding:
    log = Path(f"{path}-wal")
    size = log.stat().st_size if log.exists() else 0
    message = f"the write-ahead log has {size / 2**20:.1f} MiB"
    if size < 64 * 2**20:
        return Finding("log", "ok", message)
    return Finding("log", "warning", message, "end the read transaction that some connection keeps open")


def _schema(cursor: sqlite3.Cursor) -> Finding:
    version = cursor.execute("select value from windlass_meta where name = 'schema'").fetchone()[0]
    return Finding("schema", "ok", f"version {version} of {SCHEMA}")


def _integrity(cursor: sqlite3.Cursor) -> Finding:
    problems = [row[0] for row in cursor.execute("pragma quick_check(5)").fetchall()]
    if problems == ["ok"]:
        return Finding("integrity", "ok", "quick_check found nothing")
    return Finding("integrity", "error", "; ".join(problems), "stop all processes and restore the file from a backup")
