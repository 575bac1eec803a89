"""Jobs in one SQLite file, for many threads and many processes of one machine."""

from windlass.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
