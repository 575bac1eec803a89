"""The pytest plugin of Windlass: fixtures with your app on a store in memory. It comes with the package.

Name the app once, in `pyproject.toml`, or for single tests by a marker:

    [tool.pytest.ini_options]
    windlass_app = "shop.jobs:app"

    @pytest.mark.windlass_app("shop.jobs:app")

| fixture | gives |
|---|---|
| `windlass_app` | a `TestApp`: your app in memory, for the time of one test |
| `windlass_app_sync` | the same for tests without an event loop |
| `windlass_clock` | the `FakeClock` of both |

It loads nothing of Windlass but itself until a test asks for one of them, and needs no plugin for async tests.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from windlass.app.app import App
    from windlass.testing.app import TestApp
    from windlass.testing.blocking_app import BlockingTestApp
    from windlass.testing.clock import FakeClock

NAME: Final = "windlass_app"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the app be named once for all tests."""
    parser.addini(
        NAME, "the Windlass app under test, as module:app, for the fixtures windlass_app and windlass_app_sync"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let the app be named for single tests."""
    config.addinivalue_line("markers", f"{NAME}(app): the Windlass app that the fixtures of this test are about")


@pytest.fixture
def windlass_clock() -> "FakeClock":
    """Return a clock that moves only when told."""
    from windlass.testing.clock import FakeClock

    return FakeClock()


@pytest.fixture
def windlass_app(request: pytest.FixtureRequest, windlass_clock: "FakeClock") -> "Iterator[TestApp]":
    """Give the app on a store in memory, for the time of one test."""
    from windlass.testing.app import TestApp
    from windlass.testing.app_in_memory import moved

    app = _app_of(request)
    with moved(app, windlass_clock) as store:
        test = TestApp(app, store, windlass_clock)
        yield test
        test.close_from_outside()


@pytest.fixture
def windlass_app_sync(request: pytest.FixtureRequest, windlass_clock: "FakeClock") -> "Iterator[BlockingTestApp]":
    """Give the app on a store in memory, for the time of one test without an event loop."""
    from windlass.testing.app_in_memory import in_memory_sync

    with in_memory_sync(_app_of(request), clock=windlass_clock) as test:
        yield test


def _app_of(request: pytest.FixtureRequest) -> "App":
    marker = request.node.get_closest_marker(NAME)
    if marker is not None and marker.args:
        named: object = marker.args[0]
        where = f"@pytest.mark.{NAME}"
    else:
        named, where = request.config.getini(NAME), f"the setting {NAME} of pytest"
    if not named:
        message = (
            f'which app is it? Set {NAME} = "module:app" under [tool.pytest.ini_options] in pyproject.toml, or write '
            f'@pytest.mark.{NAME}("module:app") above the test'
        )
        raise pytest.UsageError(message)
    return _checked(_load(named, where) if isinstance(named, str) else named, where)


def _load(named: str, where: str) -> object:
    module, colon, path = named.partition(":")
    if not (module and colon and path):
        message = f"{where} is {named!r}: write module:app"
        raise pytest.UsageError(message)
    try:
        found: object = import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        message = (
            f"{where} is {named!r}, which is not there ({error}): is its folder in the setting pythonpath of pytest?"
        )
        raise pytest.UsageError(message) from error
    return found


def _checked(app: object, where: str) -> "App":
    from windlass.app.app import App

    if isinstance(app, App):
        return app
    message = f"{where} names {app!r}, which is no windlass.App"
    raise pytest.UsageError(message)
