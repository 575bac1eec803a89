"""One thin layer over an async object: its methods, as blocking ones."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from windlass.client.listing import Listing

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Inner = TypeVar("Inner")
Behind_co = TypeVar("Behind_co", covariant=True)


class Layer(Protocol[Behind_co]):
    """Has an async object behind it."""

    def run(self, call: Callable[[Behind_co], Coroutine[Any, Any, R]]) -> R:
        """Return what `call` returns for that object, and block until then."""
        ...


class Blocking(Generic[Inner, P, R]):
    """An async method of the object behind, as a blocking one with the same signature."""

    def __init__(self, method: Callable[Concatenate[Inner, P], Coroutine[Any, Any, R]]) -> None:
        """Block on `method`."""
        self.method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, layer: None, owner: type) -> Self: ...

    @overload
    def __get__(self, layer: Layer[Inner], owner: type) -> Callable[P, R]: ...

    def __get__(self, layer: Layer[Inner] | None, owner: type) -> Self | Callable[P, R]:
        if layer is None:
            return self
        method = self.method

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return layer.run(lambda inner: method(inner, *args, **kwargs))

        return call


class BlockingListing(Generic[Inner, P, T]):
    """A method of the object behind that lists records, as one with the same signature that returns an iterator."""

    def __init__(self, method: Callable[Concatenate[Inner, P], Listing[T]]) -> None:
        """Iterate over what `method` lists."""
        self.method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, layer: None, owner: type) -> Self: ...

    @overload
    def __get__(self, layer: Layer[Inner], owner: type) -> Callable[P, Iterator[T]]: ...

    def __get__(self, layer: Layer[Inner] | None, owner: type) -> Self | Callable[P, Iterator[T]]:
        if layer is None:
            return self
        method = self.method

        def call(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            async def begin(inner: Inner) -> AsyncGenerator[Sequence[T], None]:
                return method(inner, *args, **kwargs).pages()

            # wrong arguments are refused by the call itself, not at the first step of the iterator
            return _records(layer, layer.run(begin))

        return call


def _records(layer: Layer[Inner], pages: AsyncGenerator[Sequence[T], None]) -> Iterator[T]:
    async def read(_: Inner) -> Sequence[T]:
        async for page in pages:
            return page
        return ()

    while page := layer.run(read):
        yield from page
