from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import pytest

from windlass import App, Context, InvalidValue

T = TypeVar("T")


class Pool:
    pass


class Engine:
    pass


class Repository(Generic[T]):
    pass


@pytest.fixture
def app() -> App:
    return App("memory://")


async def test_what_is_yielded_is_provided_by_its_annotation(app: App) -> None:
    @app.lifespan
    async def pool() -> AsyncIterator[Pool]:
        yield Pool()

    @app.lifespan
    async def engine() -> AsyncGenerator[object, None]:
        yield Engine()

    async with app.open_lifespan() as provided:
        assert isinstance(provided[Pool], Pool)
        assert isinstance(provided[object], Engine)


async def test_without_an_annotation_it_is_provided_by_what_it_is(app: App) -> None:
    async def pool() -> AsyncIterator[Any]:
        yield Pool()

    app.lifespan(pool)

    async with app.open_lifespan() as provided:
        assert set(provided) == {Pool}


async def test_an_async_context_manager_is_a_lifespan_too(app: App) -> None:
    @app.lifespan
    @asynccontextmanager
    async def pool() -> AsyncGenerator[Pool, None]:
        yield Pool()

    async with app.open_lifespan() as provided:
        assert set(provided) == {Pool}


async def test_a_lifespan_may_provide_nothing(app: App) -> None:
    @app.lifespan
    async def tracing() -> AsyncIterator[None]:
        yield

    async with app.open_lifespan() as provided:
        assert provided == {}


def noting(seen: list[str], name: str) -> Callable[[], AsyncIterator[None]]:
    async def lifespan() -> AsyncIterator[None]:
        seen.append(f"open {name}")
        yield
        seen.append(f"close {name}")

    return lifespan


async def test_many_are_opened_in_order_and_closed_in_reverse(app: App) -> None:
    seen: list[str] = []
    app.lifespan(noting(seen, "a"))
    app.lifespan(noting(seen, "b"))

    async with app.open_lifespan():
        seen.append("work")

    assert seen == ["open a", "open b", "work", "close b", "close a"]


async def test_what_was_opened_is_closed_when_a_later_one_fails(app: App) -> None:
    closed: list[str] = []

    @app.lifespan
    async def first() -> AsyncIterator[None]:
        try:
            yield
        finally:
            closed.append("first")

    @app.lifespan
    async def second() -> AsyncIterator[None]:
        message = "no such host"
        raise OSError(message)
        yield

    with pytest.raises(OSError, match="no such host"):
        async with app.open_lifespan():
            pass
    assert closed == ["first"]


def test_an_async_function_without_a_yield_is_refused_at_once(app: App) -> None:
    async def pool() -> int:
        return 3

    with pytest.raises(
        InvalidValue, match=r"^a lifespan is an async function that yields once: pool\(\) has no yield$"
    ):
        app.lifespan(pool)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]


def test_a_plain_function_that_yields_is_refused_at_once(app: App) -> None:
    def pool() -> Iterator[int]:
        yield 3

    with pytest.raises(InvalidValue, match=r"yields once: write async def pool\(\)$"):
        app.lifespan(pool)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]


async def three() -> int:
    return 3


@pytest.mark.parametrize(
    "make,told",
    [(int, "an object of type int"), (lambda: None, "None"), (three, "an object of type coroutine")],
)
async def test_a_plain_function_must_return_an_async_context_manager(
    app: App, make: Callable[[], object], told: str
) -> None:
    def pool() -> object:
        return make()

    app.lifespan(pool)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]

    with pytest.raises(InvalidValue, match=rf"returns an async context manager: pool\(\) returned {told}$"):
        async with app.open_lifespan():
            pass


async def test_each_opening_is_a_new_one(app: App) -> None:
    @app.lifespan
    async def pool() -> AsyncIterator[Pool]:
        yield Pool()

    async with app.open_lifespan() as one, app.open_lifespan() as other:
        assert one[Pool] is not other[Pool]


def test_a_parameter_of_a_provided_type_is_given_by_the_server(app: App) -> None:
    @app.job
    def send(ctx: Context, user_id: int, pool: Pool, users: Repository[int]) -> None:
        pass

    @app.lifespan
    async def pool() -> AsyncIterator[Pool]:
        yield Pool()

    @app.lifespan
    async def repository() -> AsyncIterator[Repository[int]]:
        yield Repository()

    assert send.registered.arguments.wants == {"ctx": Context, "pool": Pool, "users": Repository[int]}
    assert send.call(42).new_job().payload == (b'{"user_id":42}', "json")  # type: ignore[call-arg]


def test_a_lifespan_that_comes_late_counts(app: App) -> None:
    @app.job
    def send(pool: Pool) -> None:
        pass

    with pytest.raises(InvalidValue, match="lifespan"):
        _ = send.registered.arguments.wants

    @app.lifespan
    async def pool() -> AsyncIterator[Pool]:
        yield Pool()

    assert send.registered.arguments.wants == {"pool": Pool}


async def test_two_lifespans_of_one_type_are_refused(app: App) -> None:
    @app.lifespan
    async def first() -> AsyncIterator[Pool]:
        yield Pool()

    @app.lifespan
    async def second() -> AsyncIterator[Pool]:
        yield Pool()

    with pytest.raises(InvalidValue, match="two lifespans provide"):
        async with app.open_lifespan():
            pass


def test_a_lifespan_takes_no_arguments(app: App) -> None:
    async def pool(size: int) -> AsyncIterator[Pool]:
        assert size
        yield Pool()

    with pytest.raises(InvalidValue, match="takes no arguments"):
        app.lifespan(pool)  # type: ignore[type-var]
