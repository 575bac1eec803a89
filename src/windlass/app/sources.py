"""Where the settings of an app come from: the environment and the project's file go over what the code says."""

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from windlass.app.client_settings import ClientSettings
from windlass.config import FLAG, Resolved, find_project, resolve
from windlass.connect import TOKEN
from windlass.core.settings import Unset
from windlass.engine.config import OF_APP, ServerConfig

OF_CLIENT: Final = (
    "url",
    "max_attempts",
    "lease",
    "priority",
    "keep_succeeded",
    "keep_dead",
    "keep_cancelled",
    "keep_max",
    "max_payload",
    "poll_interval",
)
"""The settings of the clients of an app."""
NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


def resolved(
    given: ClientSettings,
    name: str | Unset,
    server: Mapping[str, object] = NOTHING,
    *,
    flags: Mapping[str, object] = NOTHING,
) -> Resolved:
    """Return every setting that holds; `given`, `name` and what a `server` was given are what the code says."""
    code = {setting: getattr(given, setting) for setting in OF_CLIENT} | {"name": name}
    # a store that was made by hand is meant
    if not isinstance(given.url, str):
        del code["url"]
    project = find_project(Path.cwd())
    return resolve({**code, **server}, flags, environ=os.environ, project=project, queues=given.queues)


def for_clients(given: ClientSettings, config: Resolved) -> ClientSettings:
    """Return what holds for the clients of an app."""
    held = config.given(OF_CLIENT)
    if not isinstance(given.url, str | None) and config.source("url") != FLAG:
        held.pop("url", None)
    token = os.environ.get(TOKEN, "").strip() or given.token
    return replace(given, **held, token=token, queues=dict(config.queue_settings))


def for_a_server(given: ServerConfig, config: Resolved) -> ServerConfig:
    """Return what holds for a server that was `given` some settings in code."""
    held = config.given(each.name for each in fields(ServerConfig) if each.name not in OF_APP)
    # per queue they are the client's, and here only what was given for this server
    return ServerConfig(**held, **{name: getattr(given, name) for name in OF_APP})
