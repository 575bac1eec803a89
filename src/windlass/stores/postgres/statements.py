"""The statements of this store, one file each."""

from functools import cache
from importlib.resources import files

_HERE = files("windlass.stores.postgres")


@cache
def sql(name: str) -> str:
    """Return the text of `sql/<name>.sql`."""
    return (_HERE / "sql" / f"{name}.sql").read_text()


@cache
def migration(number: int) -> str:
    """Return the text of `migrations/<number>.sql`."""
    return (_HERE / "migrations" / f"{number:04}.sql").read_text()
