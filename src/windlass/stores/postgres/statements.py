"""SQL statements of the Postgres store, one file each.

A name in braces stands for a list of columns, or for a part that several statements share, in `sql/parts`. In a
clone of the project `make statement STORE=postgres NAME=claim` prints a statement in full.

Parameters have names, and a value has the same name in all statements. `:ids`, `:seqs`, `:queues` and other plurals are
arrays. Each name is followed by its type, as in `:limit::integer`. A statement is sent to the server with `$1`, `$2`,
and so on in their place.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import Final, NamedTuple

from windlass.core.job import ID_FIELDS
from windlass.stores.postgres.rows import ClaimedRow, JobRow
from windlass.stores.postgres.work import Parameters

_HERE: Final = files("windlass.stores.postgres")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_PARAMETER: Final = re.compile(
    r"""
    --[^\n]*                        # a comment
    | '(?:[^']|'')*'                # a string
    | "(?:[^"]|"")*"                # a quoted identifier
    | (?P<tag>\$\w*\$).*?(?P=tag)   # a string in dollars
    | ::                            # a cast
    | :(?P<name>[a-z]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
"""A named parameter, or a text in which a colon begins none."""


_AS_TEXT: Final = {*ID_FIELDS, "token"}
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
    """Return the text of the statement in `sql/<name>.sql`, with its columns and parts, and the names of parameters."""
    text = (_HERE / "sql" / f"{name}.sql").read_text().strip()
    return _PLACEHOLDER.sub(lambda found: _COLUMNS.get(found[1]) or sql(f"parts/{found[1]}"), text)


class CompiledStatement(NamedTuple):
    """A statement as it is sent to the server: `values` puts parameters in the order of their numbers."""

    text: str
    values: Callable[[Parameters], tuple[object, ...]]


@cache
def statement(name: str) -> CompiledStatement:
    """Return the statement in `sql/<name>.sql`, compiled."""
    return compile_statement(sql(name))


def compile_statement(text: str) -> CompiledStatement:
    """Number the named parameters of a statement."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        name = found["name"]
        return found[0] if name is None else f"${names.setdefault(name, len(names) + 1)}"

    numbered = _PARAMETER.sub(number, text)
    return CompiledStatement(numbered, _values_of(list(names)))


def _values_of(names: Sequence[str]) -> Callable[[Parameters], tuple[object, ...]]:
    """Return the function that puts parameters in order; it costs less than a microsecond."""
    match names:
        case []:
            return lambda _: ()
        case [only]:
            return lambda parameters: (parameters[only],)
        case _:
            return itemgetter(*names)


@cache
def migration(number: int) -> str:
    """Return the text of `migrations/<number>.sql`."""
    return (_HERE / "migrations" / f"{number:04}.sql").read_text()


@cache
def new_migration(number: int) -> str:
    """Return the text of `migrations/<number>_new.sql`, where there is one for a store that is being made."""
    text = _HERE / "migrations" / f"{number:04}_new.sql"
    return text.read_text() if text.is_file() else migration(number)
