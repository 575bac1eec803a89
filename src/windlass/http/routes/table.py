"""All handlers: one for each operation, but for those that are a stream."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.http.call import Handled
from windlass.http.routes import claims, jobs, kv, moving, queues, schedules, servers, services

HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    *jobs.HANDLED,
    *claims.HANDLED,
    *queues.HANDLED,
    *schedules.HANDLED,
    *servers.HANDLED,
    *kv.HANDLED,
    *services.HANDLED,
    *moving.HANDLED,
)
