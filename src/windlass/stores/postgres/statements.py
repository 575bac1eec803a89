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


@cache
def new_migration(number: int) -> str:
    """Return the text of `migrations/<number>_new.sql`, where there is one for a store that is being made."""
    text = _HERE / "migrations" / f"{number:04}_new.sql"
    return text.read_text() if text.is_file() else migration(number)
