"""SQL statements of the SQLite store, one file each.

A placeholder in braces stands for a list of columns, or for a part that several statements share. In a clone of the
project `make statement STORE=sqlite NAME=claim` prints a statement in full.

Parameters have names, and a value has the same name in all statements. `:ids`, `:seqs`, `:queues` and other plurals are
JSON arrays. Only an insert of many rows takes its values by position: they follow its list of columns.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from windlass.core.states import State
from windlass.core.stats import Totals
from windlass.stores.sqlite.rows import (
    BARE_COLUMNS,
    ENQUEUED_COLUMNS,
    MOVED_COLUMNS,
    STANDING_COLUMNS,
    ClaimedRow,
    JobRow,
)
from windlass.stores.sqlite.schedule_rows import ScheduleRow

_HERE: Final = files("windlass.stores.sqlite")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "job": JobRow._fields,
    "claimed": ClaimedRow._fields,
    "bare": BARE_COLUMNS,
    "enqueued": ENQUEUED_COLUMNS,
    "moved": MOVED_COLUMNS,
    "standing": STANDING_COLUMNS,
    "schedule": ScheduleRow._fields,
    "state": [str(state) for state in State],
    "total": [f"{name}_total" for name in Totals._fields],
}


@cache
def sql(name: str) -> str:
    """Return the statement in `sql/<name>.sql`, with its placeholders filled."""
    return _PLACEHOLDER.sub(lambda found: _filled(found[1]), (_HERE / "sql" / f"{name}.sql").read_text())


@cache
def migration(number: int) -> str:
    """Return the text of `migrations/<number>.sql`."""
    return (_HERE / "migrations" / f"{number:04}.sql").read_text()


def _filled(placeholder: str) -> str:
    """Return the text of a placeholder: `job_columns`, `bare_values`, or the name of a part."""
    name, _, what = placeholder.partition("_")
    if what == "columns":
        return ", ".join(_COLUMNS[name])
    if what == "values":
        return ", ".join("?" * len(_COLUMNS[name]))
    return sql(f"parts/{placeholder}").rstrip()
