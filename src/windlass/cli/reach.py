"""Which store a command works on, and the client to it."""

import contextlib
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from windlass.app.app import App
from windlass.app.load import load_app
from windlass.app.sources import OF_CLIENT
from windlass.cli.output import note
from windlass.client.client import Client
from windlass.config import Resolved, find_project, resolve
from windlass.config.masked import masked
from windlass.connect import connect, without_creating
from windlass.core.errors import InvalidValue, NotAllowed, SchemaMissing
from windlass.core.moving import Moved
from windlass.core.store import Store

NO_APP: Final = (
    "no app is named, whose handlers could make this job: give --app tasks:app, set WINDLASS_APP, or write app in "
    "[tool.windlass] of pyproject.toml"
)
NO_STORE: Final = (
    "no store is named: give --url sqlite:///jobs.db, set WINDLASS_URL, write url in [tool.windlass] of "
    "pyproject.toml, or name an app by --app"
)
LET_IT_BE_MADE: Final = ": look at the URL, or let the first enqueue make it"
"""How the message goes on where no store is."""

_LOOKING: Final = re.compile(r"[?&](create=no|look=yes)\b")
"""What a URL is given so that nothing is made or changed by it."""


class Choice(NamedTuple):
    """What the flags say: an app, a URL, both or none."""

    app: str | None
    url: str | None


class Reached(NamedTuple):
    """A client, and the app that it belongs to, if one was loaded."""

    client: Client
    app: App | None


class Looked(NamedTuple):
    """What is reached to be looked at, and whether its store was moved, so that it takes no job."""

    client: Client
    app: App | None
    moved: bool


@asynccontextmanager
async def reached(
    choice: Choice, *, create: bool = False, changes: bool = False, app_needed: bool = False
) -> AsyncGenerator[Reached, None]:
    """Reach the store that is meant for the time of a block; without `create` it must be there already.

    Without `create` and `changes` it is only looked at, also beside a process that owns it.
    An app is loaded when it was asked for by its flag, when it is needed, or when nothing else tells the store: a
    command that only looks has no need to run a program.
    """
    settings = outside(choice)
    url = settings.value("url")
    adjusted = _unchanged if create else partial(without_creating, look=not changes)
    if choice.app or app_needed or url is None:
        app = chosen_app(choice, settings)
        if app is None:
            raise InvalidValue(NO_APP if app_needed else NO_STORE)
        client = _client_of(app, choice, adjusted)
    else:
        app = None
        client = _connect(adjusted(str(url)), settings)
    try:
        check_survives(client)
        if not create:
            await open_existing(client, shown_url(settings if app is None else app.config))
        # else it opens at its first use: what is refused before that leaves no file behind
        yield Reached(client, app)
    finally:
        await (client if app is None else app).close()


@asynccontextmanager
async def looked_at(choice: Choice) -> AsyncGenerator[Looked, None]:
    """Reach a store to show what is there; a line on stderr says where to look when it was moved."""
    async with reached(choice) as (client, app):
        moved = await _moved(client.store)
        if moved is not None:
            note(f"this store was moved to {masked(moved.to)}: look there by --url {masked(moved.to)}")
        yield Looked(client, app, moved is not None)


async def _moved(store: Store) -> Moved | None:
    try:
        return await store.moved()
    except NotAllowed:
        return None


def check_survives(client: Client) -> None:
    """Refuse a store that nobody else could ever see."""
    if not client.store.features.survives_process:
        message = "a store in memory lives with its process, and a command has one of its own: name another store"
        raise InvalidValue(message)


def settings_of(choice: Choice, found: Reached | Looked) -> Resolved:
    """Return the settings that hold: those of the app, if one was loaded."""
    return outside(choice) if found.app is None else found.app.config


def dead_after(settings: Resolved) -> timedelta:
    """Return after which silence a server counts as gone."""
    silence = settings.value("dead_after")
    assert isinstance(silence, timedelta)  # noqa: S101 - the form of the setting says so
    return silence


def shown_url(settings: Resolved) -> str:
    """Return the URL as it was given, without secrets."""
    return _LOOKING.sub("", masked(str(settings.value("url"))))


def chosen_store(choice: Choice) -> str | Store:
    """Return the URL of the store that is meant, or the store itself that an app was given; nothing is opened."""
    settings = outside(choice)
    url = settings.value("url")
    if url is not None and not choice.app:
        return str(url)
    app = chosen_app(choice, settings)
    if app is None or app.url is None:
        raise InvalidValue(NO_STORE)
    return app.url


async def open_existing(client: Client, shown: str) -> None:
    """Open a store that must be there already; `shown` is its URL as people may see it."""
    try:
        await client.open()
    except SchemaMissing as error:
        message = f"there is no store at {shown} yet{LET_IT_BE_MADE}"
        raise SchemaMissing(message) from error


def outside(choice: Choice) -> Resolved:
    """Return the settings that hold without any app."""
    return resolve({}, choice._asdict(), environ=os.environ, project=find_project(Path.cwd()))


def chosen_app(choice: Choice, settings: Resolved) -> App | None:
    """Load the app that is meant, if any; what its modules print is no part of a command's output."""
    spec = settings.value("app")
    if spec is None:
        return None
    with contextlib.redirect_stdout(sys.stderr):
        app = load_app(str(spec))
    app.use_flags(choice._asdict())
    return app


def _unchanged(url: str) -> str:
    return url


def _client_of(app: App, choice: Choice, adjusted: Callable[[str], str]) -> Client:
    url = app.url
    if isinstance(url, str) and (wanted := adjusted(url)) != url:
        app.use_flags({**choice._asdict(), "url": wanted})
    return app.client


def _connect(url: str, settings: Resolved) -> Client:
    given = settings.given(name for name in OF_CLIENT if name != "url")
    return connect(url, **given, queues=settings.queue_settings)
