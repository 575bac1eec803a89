"""Guard of the stores of apps, for test runs: the pytest plugin refuses by it an app on its own store, and its URL."""

from collections.abc import Callable

_guard: Callable[[object], None] | None = None


def check_store_of(app: object) -> None:
    """Raise what the guard raises for an app that is about to use its own store, or for a URL that is about to be used.

    Outside of test runs there is no guard.
    """
    if _guard is not None:
        _guard(app)


def set_guard(guard: Callable[[object], None] | None) -> Callable[[object], None] | None:
    """Call `guard` from now on, and return the one before."""
    global _guard
    before, _guard = _guard, guard
    return before
