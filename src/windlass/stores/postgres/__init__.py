"""Jobs in a Postgres database, for many machines."""

from windlass.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
