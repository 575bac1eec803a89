"""Finding a handler by the name of its function, in a process that has yet to import it."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from windlass.client.client import Client
from windlass.core.errors import InvalidValue
from windlass.engine.served import TenantScope
from windlass.handlers.registered import Registered


class ChildApp(Protocol):
    """An app, as a child process sees it."""

    @property
    def client(self) -> Client:
        """The client of this process."""
        ...

    @property
    def tenant_scope(self) -> TenantScope | None:
        """What wraps the attempts of jobs that have a tenant."""
        ...

    async def close(self) -> None:
        """Close the client, if it was used."""
        ...

    def open_lifespan(self) -> AbstractAsyncContextManager[Mapping[type, Any]]:
        """Open what handlers need, once per process."""
        ...


class Found(NamedTuple):
    """A handler and its app."""

    registered: Registered
    app: ChildApp


def find(module: str, function: str, kind: str | None) -> Found:
    """Import `module` and return the handler of `kind` in it; raises whatever the import raises, and `InvalidValue`."""
    imported = import_module(module)
    named: Any = imported
    for part in function.split("."):
        named = getattr(named, part)
    if _has(named, "registered") and isinstance(named.registered, Registered):
        return Found(named.registered, named.app)
    for found in _handlers(imported):
        if found.registered.function is named and found.registered.kind == kind:
            return found
    message = (
        f"{module}.{function} is a handler in the server and not in a child process: register it where its module is "
        "imported, beside the app, not under a condition or inside of another function"
    )
    raise InvalidValue(message)


def _handlers(module: ModuleType) -> Iterator[Found]:
    """Give the handlers that may have another name than their functions: `send = app.job(_send)`."""
    for value in list(vars(module).values()):
        if _has(value, "registered") and isinstance(value.registered, Registered):
            yield Found(value.registered, value.app)


def _has(value: object, name: str) -> bool:
    # without asking: a stand-in for something else (`current_app`) may raise when it is touched
    return inspect.getattr_static(value, name, None) is not None
