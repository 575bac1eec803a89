"""Statements on the connections of Postgres' drivers, each of which is imported only when the caller uses it."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, Protocol, TypeAlias, TypeVar, cast

from windlass.core.errors import InvalidValue

T = TypeVar("T")
Rows: TypeAlias = Sequence[Sequence[Any]]

NO_TRANSACTION: Final = (
    "no transaction is open on connection=, so each statement would commit by itself: begin one first (psycopg and "
    "asyncpg: connection.transaction(); Django: transaction.atomic(); SQLAlchemy: any isolation level but AUTOCOMMIT)"
)

OPEN_ALREADY: Final = (
    "a transaction is open on this connection already: ctx.transaction(connection) begins one, and ends it"
)


class BlockingDriver(Protocol):
    """An open connection whose calls block; both refuse one that is in no transaction."""

    def execute(self, sql: str, parameters: Sequence[object]) -> Rows:
        """Run a statement with $1, $2, ... and return its rows."""
        ...

    def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`."""
        ...


class AsyncDriver(Protocol):
    """As `BlockingDriver`, for a connection that belongs to an event loop."""

    async def execute(self, sql: str, parameters: Sequence[object]) -> Rows:
        """Run a statement with $1, $2, ... and return its rows."""
        ...

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`."""
        ...


def blocking_driver(connection: Any) -> BlockingDriver:  # noqa: ANN401 - whatever the library has below
    """Return how statements run on `connection`."""
    match package_of(connection):
        case "psycopg":
            from windlass.borrow.psycopg import Psycopg  # noqa: PLC0415 - the caller has it, others need not

            return Psycopg(connection)
        case "psycopg2":
            from windlass.borrow.psycopg2 import Psycopg2  # noqa: PLC0415 - as above

            return Psycopg2(connection)
        case _:
            raise not_postgres(connection)


def async_driver(connection: Any) -> AsyncDriver:  # noqa: ANN401 - whatever the library has below
    """Return how statements run on `connection`."""
    match package_of(connection):
        case "psycopg":
            from windlass.borrow.psycopg import AsyncPsycopg  # noqa: PLC0415 - the caller has it, others need not

            return AsyncPsycopg(connection)
        case "asyncpg":
            from windlass.borrow.asyncpg import Asyncpg  # noqa: PLC0415 - as above

            return Asyncpg(connection)
        case _:
            raise not_postgres(connection)


def package_of(connection: object) -> str | None:
    """Return which of the libraries that we know made `connection`, or the class that its own class extends."""
    # by __class__ and not by type(): what wraps a connection, to trace it, names the wrapped one there
    packages = (cls.__module__.partition(".")[0] for cls in connection.__class__.__mro__)
    return next((package for package in packages if package in _LIBRARIES), None)


def not_postgres(connection: object) -> InvalidValue:
    """Return the refusal of a connection that no Postgres driver of ours made."""
    return InvalidValue(
        f"connection= goes through {shown(connection)}, and the jobs are in Postgres: it takes a connection of "
        "psycopg, psycopg2 or asyncpg, or of SQLAlchemy or Django through one of them"
    )


def not_sqlite(connection: object) -> InvalidValue:
    """Return the refusal of a connection that is not made by `sqlite3`."""
    return InvalidValue(
        f"connection= goes through {shown(connection)}, and the jobs are in SQLite: it takes a connection of sqlite3, "
        "or of SQLAlchemy or Django through sqlite3 or aiosqlite"
    )


def arrays(parameters: Sequence[object]) -> list[object]:
    """Return parameters for drivers that take a list for an array, and a tuple for something else."""
    return [list(cast("tuple[object]", value)) if isinstance(value, tuple) else value for value in parameters]


class OnPostgres:
    """What is the same for every bare connection to Postgres."""

    def __init__(self, owner: Any) -> None:  # noqa: ANN401 - of one driver or another
        """Work in the transaction of `owner`."""
        self.owner = owner

    async def run(self, work: Callable[[Any], T]) -> NoReturn:  # noqa: ARG002 - there is nothing to run it on
        """Refuse."""
        raise not_sqlite(self.owner)

    async def after_commit(self, ring: Callable[[], None]) -> bool:  # noqa: ARG002 - there is no hook to give it to
        """Return False: no driver tells of a commit."""
        return False


def shown(connection: object) -> str:
    """Name the type of `connection`."""
    return f"{type(connection).__module__}.{type(connection).__qualname__}"


_LIBRARIES: Final = frozenset({"asyncpg", "django", "psycopg", "psycopg2", "sqlalchemy"})
