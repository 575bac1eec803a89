"""All handlers: one for each operation, but for those that are a stream."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.http.call import Handled
from windlass.http.routes import about, claims, jobs, moving, plain, schedules, servers, services

HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    *jobs.HANDLED,
    *claims.HANDLED,
    *about.HANDLED,
    *schedules.HANDLED,
    *servers.HANDLED,
    *services.HANDLED,
    *moving.HANDLED,
    *plain.HANDLED,
)
