"""The parameters of each statement: how they are compiled, and that the code passes those that the statement names."""

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

import pytest

from windlass.core.filters import FILTER_FIELDS, JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Token
from windlass.core.queries import ListNewestJobs
from windlass.core.requests import Settlement
from windlass.core.verdict import ToSucceeded
from windlass.stores.postgres import store
from windlass.stores.postgres.moves.ack import ack_many
from windlass.stores.postgres.moves.prune import COUNTS, SMALL_RECORDS, forget_counts, forget_small
from windlass.stores.postgres.newest_queries import newest
from windlass.stores.postgres.statements import compile_statement, sql, statement
from windlass.stores.postgres.work import Changes, Statement, Work

HERE: Final = Path(store.__file__).parent
STATEMENTS: Final = sorted(path.stem for path in (HERE / "sql").glob("*.sql"))
SENT_BY_THE_DRIVER: Final = {"lend", "lent_back", "make_schema", "migration_turn", "migration_turn_outside", "probe"}
"""Statements that no `Statement` names: their text is sent by itself, or their name is a variable."""


class Reader(Mapping[str, object]):
    """Parameters of every name, that keep which of them were read."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> object:
        self.names.add(name)
        return name

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def names_in(text: str) -> set[str]:
    """Return the names of the parameters of a statement."""
    reader = Reader()
    compile_statement(text).values(reader)
    return reader.names


@pytest.mark.parametrize(
    "text, compiled, values",
    [
        ("select :b::int, :a, :b", "select $1::int, $2, $1", ("b", "a")),
        ("select ':a', '''', ':b', :c", "select ':a', '''', ':b', $1", ("c",)),
        ('select ":a" -- not :b\n, :c', 'select ":a" -- not :b\n, $1', ("c",)),
        ("select $x$ it's :a $$ $x$, $$:b$$, :c", "select $x$ it's :a $$ $x$, $$:b$$, $1", ("c",)),
        ("select a[1:2], now()::text", "select a[1:2], now()::text", ()),
    ],
    ids=["named twice", "in a string", "in a name and a comment", "in dollars", "no parameter"],
)
def test_a_parameter_is_numbered_where_it_is_one(text: str, compiled: str, values: tuple[object, ...]) -> None:
    found = compile_statement(text)

    assert found.text == compiled
    assert found.values(Reader()) == values


def test_a_parameter_that_is_not_passed_is_an_error() -> None:
    with pytest.raises(KeyError, match="queues"):
        statement("claim").values({"now": None, "request_id": "r"})


class Module(NamedTuple):
    """A module of the store: the dictionaries that its functions return, its constants, and where names come from."""

    tree: ast.Module
    values: dict[str, ast.expr]
    imported: dict[str, str]


class Call(NamedTuple):
    """A call of a statement, and the names that it passes; None where the source does not say them."""

    where: str
    statement: str
    names: set[str] | None


def read_module(path: Path) -> Module:
    tree = ast.parse(path.read_text())
    values: dict[str, ast.expr] = {}
    imported: dict[str, str] = {}
    for each in tree.body:
        match each:
            case ast.FunctionDef(name=name, body=[*_, ast.Return(value=ast.Dict() as returned)]):
                values[name] = returned
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = value
            case ast.ImportFrom(module=str(module)):
                imported |= {
                    name.name: f"{module.rpartition('postgres.')[2].replace('.', '/')}.py" for name in each.names
                }
            case _:
                pass
    return Module(tree, values, imported)


MODULES: Final = {str(path.relative_to(HERE)): read_module(path) for path in sorted(HERE.rglob("*.py"))}


def calls() -> Iterator[Call]:
    for file, module in MODULES.items():
        for function in ast.walk(module.tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from calls_in(function, file)


def calls_in(function: ast.FunctionDef | ast.AsyncFunctionDef, file: str) -> Iterator[Call]:
    local = {
        target.id: each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(function):
        match call:
            case ast.Call(func=ast.Name(id="Statement" | "Many") | ast.Attribute(attr="fetch" | "_fetch" | "_ask")):
                named = [at for at, each in enumerate(call.args) if isinstance(each, ast.Constant)]
                for at in named[:1]:
                    # after the name come its parameters, if it has any
                    passed = [names_of(each, file, local) for each in call.args[at + 1 :]]
                    yield Call(f"{file}:{call.lineno}", ast.literal_eval(call.args[at]), passed[0] if passed else set())
            case _:
                pass


def names_of(node: ast.expr | None, file: str, local: Mapping[str, ast.expr]) -> set[str] | None:
    """Return the keys of the dictionary that an expression makes, or of those in the list that it makes."""
    match node:
        case ast.Dict(keys=keys, values=values):
            names: set[str] = set()
            for key, value in zip(keys, values, strict=True):
                found = names_of(value, file, local) if key is None else {ast.literal_eval(key)}
                if found is None:
                    return None
                names |= found
            return names
        case ast.ListComp(elt=each) | ast.List(elts=[each]):
            return names_of(each, file, local)
        case ast.Call(func=ast.Name(id="dict"), args=[ast.Call(func=ast.Name(id="zip"), args=[ast.Name(id=name), *_])]):
            return set(ast.literal_eval(MODULES[file].values[name]))
        case ast.Call(func=ast.Attribute(attr=JobFilter.by_field.__name__)):
            return set(FILTER_FIELDS)
        case ast.Name(id=name) if name in local:
            return names_of(local[name], file, {})
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            home = MODULES[file].imported.get(name, file)
            return names_of(MODULES[home].values.get(name), home, {}) if home in MODULES else None
        case _:
            return None


CALLS: Final = list(calls())
KNOWN: Final = {call.statement for call in CALLS if call.names is not None}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_statement_is_passed_what_it_names(name: str) -> None:
    takes = names_in(sql(name))
    given = {call.where: call.names for call in CALLS if call.statement == name}

    assert {where: names for where, names in given.items() if names != takes} == {}, f"{name}.sql takes {takes}"


def work_chosen_at_run_time() -> Iterator[Work[Any]]:
    """Yield steps whose statements have a name or parameters that the source does not say."""
    changes = Changes()
    changes.happened("default", None, 0)
    yield changes.flush()
    for keep in (True, False):
        settlement = Settlement(JobId(str(uuid4())), Token(str(uuid4())), ToSucceeded(), keep=keep)
        yield ack_many(changes, [settlement], "request", patience="1000")
    for name in SMALL_RECORDS:
        yield forget_small(changes, name)
    for name in COUNTS:
        yield forget_counts(changes, name)
    for chosen in (
        JobFilter(kind="email"),
        JobFilter(tenant="acme"),
        JobFilter(parent_id=str(uuid4())),
        JobFilter(unique_key="key"),
        JobFilter(error_type="ValueError"),
    ):
        yield newest(changes, ListNewestJobs(chosen, None, limit=1, most=1))


def statements_of(work: Work[Any]) -> Iterator[Statement]:
    """Yield the statements of steps that find no rows, but for the end of a page, up to one that needs a row."""
    with suppress(StopIteration, ValueError):
        wanted = next(work)
        while True:
            assert isinstance(wanted, Statement)
            yield wanted
            wanted = work.send([(1,)] if wanted.name == "newest_end" else [])


def test_a_statement_that_is_chosen_at_run_time_is_passed_what_it_names() -> None:
    found = [wanted for work in work_chosen_at_run_time() for wanted in statements_of(work)]

    assert [each for each in found if names_in(sql(each.name)) != set(each.parameters)] == []
    assert set(STATEMENTS) - KNOWN - {each.name for each in found} == SENT_BY_THE_DRIVER


def test_a_migration_waits_for_its_turn_by_the_name_of_its_schema() -> None:
    assert names_in(sql("migration_turn")) == names_in(sql("migration_turn_outside")) == {"schema"}
