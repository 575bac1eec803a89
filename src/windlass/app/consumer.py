"""Consumer: what `@app.consumer` makes of a function."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from windlass.engine.served import Served
from windlass.handlers.registered import Registered

P = ParamSpec("P")
T = TypeVar("T")


class Consumer(Generic[P, T]):
    """A function that takes the raw jobs of a queue; it can still be called like the function."""

    __name__: str

    def __init__(self, app: Served, registered: Registered, function: Callable[P, T]) -> None:
        """Stand for `registered`."""
        update_wrapper(self, function, updated=())
        self.app = app
        self.registered = registered
        self._function = function

    @property
    def queue(self) -> str:
        """The queue whose jobs it takes."""
        return self.registered.queue

    @property
    def function(self) -> Callable[..., Any]:
        """The plain function."""
        return self.registered.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function here and now, no job involved."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        """Show the queue and the function."""
        return f"<Consumer of queue {self.queue!r}: {self.function.__module__}.{self.function.__qualname__}>"
