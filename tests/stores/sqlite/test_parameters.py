"""The parameters of each statement, compared with what the code passes to it."""

import ast
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

import pytest

from tests.stores.sqlite.parameters import parameter_names, positional_count
from windlass.core.duration import EPOCH
from windlass.core.filters import JobFilter
from windlass.core.queries import ListNewestJobs
from windlass.core.states import State
from windlass.stores.sqlite import store
from windlass.stores.sqlite.newest_queries import newest
from windlass.stores.sqlite.reader import Snapshot
from windlass.stores.sqlite.statements import sql

HERE: Final = Path(store.__file__).parent
STATEMENTS: Final = sorted(path.stem for path in (HERE / "sql").glob("*.sql"))
FORWARDING: Final = {"run", "row", "starts_running", "_seqs", "_back", "_along"}
"""Functions that call a statement by a variable."""
UNKNOWN: Final = "?"
"""A statement or name that the source does not say."""


class Call(NamedTuple):
    """A call of a statement; `names` is None where values are passed by position."""

    where: str
    statement: str
    names: set[str] | None


def calls() -> Iterator[Call]:
    trees = {path.name: ast.parse(path.read_text()) for path in sorted(HERE.rglob("*.py"))}
    functions = [
        (file, each) for file, tree in trees.items() for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)
    ]
    returned = {
        function.name: each.value
        for _, function in functions
        for each in ast.walk(function)
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Dict)
    }
    for file, function in functions:
        yield from calls_in(function, file, returned)


def calls_in(function: ast.FunctionDef, file: str, returned: dict[str, ast.Dict]) -> Iterator[Call]:
    """Return the calls in a function; `returned` has the dictionaries that functions return."""
    dictionaries = returned | {
        target.id: each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Dict)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    names: set[str] | None
    for call in ast.walk(function):
        match call:
            case ast.Call(func=ast.Attribute(attr="run" | "row"), args=[statement, parameters]):
                names = names_of(parameters, dictionaries)
            case ast.Call(func=ast.Attribute(attr="starts_running"), args=[_, statement, parameters]):
                names = names_of(parameters, dictionaries)
            case ast.Call(
                func=ast.Attribute(attr="execute" | "executemany"),
                args=[ast.Call(func=ast.Name(id="sql"), args=[statement]), *rest],
            ):
                names = names_of(rest[0], dictionaries) if rest else set()
            case ast.Call(func=ast.Name(id="_seqs"), args=[_, statement]):
                names = {keyword.arg or UNKNOWN for keyword in call.keywords}
            case _:
                continue
        chosen = [str(each.value) for each in ast.walk(statement) if isinstance(each, ast.Constant)]
        if not chosen and function.name not in FORWARDING:
            chosen = [UNKNOWN]
        yield from (Call(f"{file}:{call.lineno}", name, names) for name in chosen)


def names_of(parameters: ast.expr | None, dictionaries: dict[str, ast.Dict]) -> set[str] | None:
    """Return the keys of a dictionary; None for what is no dictionary."""
    match parameters:
        case ast.Tuple(elts=[]):
            return set()
        case ast.Call(func=ast.Attribute(attr="by_field")):
            return set(JobFilter().by_field())
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if name in dictionaries:
            return names_of(dictionaries[name], dictionaries)
        case ast.Dict(keys=keys, values=values):
            names: set[str] = set()
            for key, value in zip(keys, values, strict=True):
                spread = names_of(value, dictionaries) if key is None else None
                names |= spread or {str(key.value) if isinstance(key, ast.Constant) else UNKNOWN}
            return names
        case _:
            return None


CALLS: Final = list(calls())
CHOSEN_AT_RUN_TIME: Final = set(STATEMENTS) - {call.statement for call in CALLS}


def test_the_statement_of_each_call_is_known() -> None:
    assert [call for call in CALLS if call.statement not in STATEMENTS] == []


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_passed_what_it_names(name: str) -> None:
    takes = parameter_names(sql(name))
    given = {call.where: call.names for call in CALLS if call.statement == name}

    if positional_count(sql(name)):
        # an insert of many rows, whose values follow its list of columns
        assert not takes, f"{name}.sql has parameters of both kinds"
        assert all(names is None for names in given.values())
        assert "insert " in sql(name)
    else:
        assert {where: names for where, names in given.items() if names != takes} == {}, f"{name}.sql takes {takes}"


class Recorder(sqlite3.Cursor):
    """A cursor that keeps the statements that it executed, each with what it was passed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.executed: dict[str, set[str]] = {}

    def execute(self, statement: str, parameters: Any = ()) -> Self:  # noqa: ANN401 - as sqlite3 takes them
        self.executed[statement] = set(parameters)
        return super().execute(statement, parameters)


def test_a_statement_that_is_chosen_at_run_time_is_passed_what_it_names(migrated: sqlite3.Connection) -> None:
    job = str(uuid4())
    chosen = [
        JobFilter(),
        *(JobFilter(queue="default", state=state) for state in State),
        JobFilter(kind="email"),
        JobFilter(tenant="acme"),
        JobFilter(parent_id=job),
        JobFilter(unique_key="key"),
        JobFilter(error_type="ValueError"),
    ]
    # a page that the last jobs do not fill is searched for by queue and state, where the counts say that jobs are
    migrated.execute(sql("enqueue_bare"), (1, job, "other", "sms", b"", "json", 0, "pending", 1, 0, 0))
    migrated.execute(f"insert into windlass_count values ({2**63 - 1}, 'default', '', 0{', 1' * 12})")
    with closing(Recorder(migrated)) as cursor:
        for each in chosen:
            newest(Snapshot(cursor, EPOCH), ListNewestJobs(each, None, limit=1, most=1))
        executed = cursor.executed

    assert {each: given for each, given in executed.items() if not parameter_names(each) <= given} == {}
    assert {name for name in STATEMENTS if sql(name) in executed} >= CHOSEN_AT_RUN_TIME
