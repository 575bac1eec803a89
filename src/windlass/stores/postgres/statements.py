"""SQL statements of the Postgres store, one file each.

A name in braces stands for a list of columns, or for a part that several statements share, in `sql/parts`. In a
clone of the project `make statement STORE=postgres NAME=claim` prints a statement in full.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from windlass.stores.postgres.rows import ClaimedRow, JobRow

_HERE: Final = files("windlass.stores.postgres")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


_AS_TEXT: Final = {"id", "parent_id", "token"}
"""Columns of UUIDs, which are read as text."""


def _columns(names: Sequence[str], table: str = "", *, cast: bool = True) -> str:
    return ", ".join(f"{table}{name}{'::text' if cast and name in _AS_TEXT else ''}" for name in names)


_COLUMNS: Final[Mapping[str, str]] = {
    "job_columns": _columns(JobRow._fields),
    "claimed_columns": _columns(ClaimedRow._fields, "claimed."),
    "returned_columns": _columns(ClaimedRow._fields, cast=False),
}


@cache
def sql(name: str) -> str:
    """Return the statement in `sql/<name>.sql`, with its columns and parts."""
    text = (_HERE / "sql" / f"{name}.sql").read_text().strip()
    return _PLACEHOLDER.sub(lambda found: _COLUMNS.get(found[1]) or sql(f"parts/{found[1]}"), text)


@cache
def migration(number: int) -> str:
    """Return the text of `migrations/<number>.sql`."""
    return (_HERE / "migrations" / f"{number:04}.sql").read_text()


@cache
def new_migration(number: int) -> str:
    """Return the text of `migrations/<number>_new.sql`, where there is one for a store that is being made."""
    text = _HERE / "migrations" / f"{number:04}_new.sql"
    return text.read_text() if text.is_file() else migration(number)
