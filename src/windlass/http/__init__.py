"""The API over HTTP and the dashboard: apps to be mounted in a web application. Each name is loaded when it is used."""

from importlib import import_module
from typing import TYPE_CHECKING

from windlass.core.errors import MissingExtra

if TYPE_CHECKING:
    from windlass.api.roles import Role
    from windlass.http.app import Api, make_app
    from windlass.http.auth import Auth, Identity
    from windlass.http.dashboard.app import Dashboard, make_dashboard

__all__ = ["Api", "Auth", "Dashboard", "Identity", "Role", "make_app", "make_dashboard"]

_HOMES = {
    "Api": "windlass.http.app",
    "Auth": "windlass.http.auth",
    "Dashboard": "windlass.http.dashboard.app",
    "Identity": "windlass.http.auth",
    "Role": "windlass.api.roles",
    "make_app": "windlass.http.app",
    "make_dashboard": "windlass.http.dashboard.app",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        message = f"module 'windlass.http' has no attribute {name!r}"
        raise AttributeError(message)
    try:
        home = import_module(_HOMES[name])
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "windlass":
            raise
        raise MissingExtra(f"windlass.http.{name}", "web") from error
    value: object = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
