"""The pytest plugin of Windlass: fixtures with your app on a store of the test. It comes with the package.

Name the app once, in `pyproject.toml`, or for single tests by a marker:

    [tool.pytest.ini_options]
    windlass_app = "shop.jobs:app"

    @pytest.mark.windlass_app("shop.jobs:app")

| fixture | gives |
|---|---|
| `windlass_app` | a `TestApp`: your app on a store of the test, for the time of one test |
| `windlass_app_sync` | the same for tests without an event loop |
| `windlass_clock` | the `FakeClock` of both |
| `windlass_store` | which store that is: `"memory"`, `"sqlite"`, a path or a URL |

A test that uses the app without one of them is refused before it reaches the app's own store; so is one that connects
to the app's own URL.

It loads nothing of Windlass but itself until a test asks for one of them, and needs no plugin for async tests.
"""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from windlass.core.store_guard import set_guard

if TYPE_CHECKING:
    from windlass.app.app import App
    from windlass.testing.app import TestApp
    from windlass.testing.blocking_app import BlockingTestApp
    from windlass.testing.clock import FakeClock
    from windlass.testing.looking import StoreReader

NAME: Final = "windlass_app"
STORE: Final = "windlass_store"
MEMORY: Final = "memory"
SQLITE: Final = "sqlite"
REAL: Final = "real"

_item: pytest.StashKey[pytest.Item | None] = pytest.StashKey()
_former_guard: pytest.StashKey[Callable[[object], None] | None] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the app and its store be named once for all tests."""
    parser.addini(
        NAME, "the Windlass app under test, as module:app, for the fixtures windlass_app and windlass_app_sync"
    )
    parser.addini(
        STORE,
        "the store of the Windlass app in a test: memory (the default), sqlite for a file of the test's own, a URL, or "
        "real to let tests use the store of the app itself",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let the app and its store be named for single tests, and guard the store of the app itself."""
    config.addinivalue_line("markers", f"{NAME}(app): the Windlass app that the fixtures of this test are about")
    config.addinivalue_line(
        "markers",
        f"{STORE}(store): the store of the Windlass app in this test: memory, sqlite, a URL, or real for its own",
    )
    config.stash[_item] = None
    config.stash[_former_guard] = set_guard(partial(_refuse_own_store, config))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take the guard away."""
    former = config.stash.get(_former_guard, None)
    set_guard(former)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Remember the test that runs, for the guard."""
    item.config.stash[_item] = item
    try:
        return (yield)
    finally:
        item.config.stash[_item] = None


@pytest.fixture
def windlass_clock() -> "FakeClock":
    """Return a clock that moves only when told."""
    from windlass.testing.clock import FakeClock

    return FakeClock()


@pytest.fixture
def windlass_store(request: pytest.FixtureRequest) -> str | Path:
    """Return where the app is in the test: "memory", "sqlite", a path or a URL. Override it to name a file of yours."""
    return _store_of(request.config, request.node)


@pytest.fixture
def windlass_app(
    request: pytest.FixtureRequest, windlass_clock: "FakeClock", windlass_store: str | Path
) -> "Iterator[TestApp]":
    """Give the app on a store of the test, for the time of one test."""
    from windlass.testing.app import TestApp

    app = _app_of(request)
    with _moved(request, app, windlass_clock, windlass_store) as reader:
        test = TestApp(app, reader, windlass_clock)
        yield test
        test.close_from_outside()


@pytest.fixture
def windlass_app_sync(
    request: pytest.FixtureRequest, windlass_clock: "FakeClock", windlass_store: str | Path
) -> "Iterator[BlockingTestApp]":
    """Give the app on a store of the test, for the time of one test without an event loop."""
    from windlass.testing.blocking_app import BlockingTestApp

    app = _app_of(request)
    with _moved(request, app, windlass_clock, windlass_store) as reader:
        test = BlockingTestApp(app, reader, windlass_clock)
        try:
            yield test
        finally:
            test.close()


def _moved(
    request: pytest.FixtureRequest, app: "App", clock: "FakeClock", store: str | Path
) -> "AbstractContextManager[StoreReader]":
    if store == MEMORY:
        from windlass.testing.app_in_memory import moved_to_memory

        return moved_to_memory(app, clock)
    if store == REAL:
        message = (
            f"{STORE} is {REAL!r}, so this test uses the store of the app itself: take no fixture that puts the app on "
            f"a store of the test, or name one: {MEMORY!r}, {SQLITE!r}, a path or a URL"
        )
        raise pytest.UsageError(message)
    if store != SQLITE and not isinstance(store, Path) and "://" not in str(store):
        message = f"{STORE} is {store!r}: it is {MEMORY!r}, {SQLITE!r}, {REAL!r}, a pathlib.Path or a URL"
        raise pytest.UsageError(message)
    from windlass.testing.app_in_database import moved_to_database

    place = request.getfixturevalue("tmp_path") / "windlass.db" if store == SQLITE else store
    return moved_to_database(app, clock, place)


def _store_of(config: pytest.Config, item: pytest.Item | None) -> str | Path:
    marker = None if item is None else item.get_closest_marker(STORE)
    if marker is not None and marker.args:
        named: str | Path = marker.args[0]
        return named
    return str(config.getini(STORE) or MEMORY)


def _refuse_own_store(config: pytest.Config, asked: object) -> None:
    """Fail a test that forgot the fixture, before it reaches the store of the app itself, by the app or by its URL."""
    item = config.stash[_item]
    named, _ = _named(config, item)
    store = _store_of(config, item)
    app = _loaded(named) if isinstance(named, str) else named
    if not named or app is None or store == REAL or _is_in_memory(own := getattr(app, "url", None)):
        return
    if asked is app:
        what = f"{app!r} is on its own store here, and not on a store of the test: "
    elif isinstance(asked, str) and isinstance(own, str) and asked != str(store) and _lead_to_one_store(asked, own):
        what = f"this URL leads to the own store of {app!r}, and not to a store of the test: "
    else:
        return
    message = (
        f"{what}take the fixture {NAME} (without an event "
        f"loop {NAME}_sync). A test that is meant to use the app's own store is marked "
        f'@pytest.mark.{STORE}("{REAL}"); for all tests set {STORE} = "{REAL}"'
    )
    pytest.fail(message)


def _lead_to_one_store(asked: str, own: str) -> bool:
    from windlass.connect import lead_to_one_store
    from windlass.core.errors import WindlassError

    try:
        return lead_to_one_store(asked, own)
    except WindlassError:
        # what is wrong with the URL of the app is said when the app is used
        return False


def _is_in_memory(store: object) -> bool:
    """Whether nothing is left of a URL or store when the run of tests has ended."""
    if isinstance(store, str):
        return store.startswith("memory:")
    return getattr(getattr(store, "features", None), "survives_process", None) is False


def _loaded(named: str) -> object:
    """Return what a name stands for, without importing its module."""
    module, _, path = named.partition(":")
    found: object = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _named(config: pytest.Config, item: pytest.Item | None) -> tuple[object, str]:
    """Return the app that is named, or its name, and where."""
    marker = None if item is None else item.get_closest_marker(NAME)
    if marker is not None and marker.args:
        return marker.args[0], f"@pytest.mark.{NAME}"
    return config.getini(NAME), f"the setting {NAME} of pytest"


def _app_of(request: pytest.FixtureRequest) -> "App":
    named, where = _named(request.config, request.node)
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
