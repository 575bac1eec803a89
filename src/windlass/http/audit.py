"""What people change is written down, with who it was."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from windlass.core.errors import WindlassError
from windlass.core.looks import AuditEntry
from windlass.http.auth import LOCAL
from windlass.http.call import Call

logger = logging.getLogger("windlass.http")

MOST_NAMED: Final = 20


async def write_down(call: Call[Any], action: str, target: str, detail: Mapping[str, str] | None = None) -> None:
    """Write that the caller did something.

    It is done by now, so that a store which cannot write this is no error of the call: the log tells then. A store that
    is served writes down itself who has called it; who stands behind that is told if it is known.
    """
    if call.client.store.features.served and call.identity is LOCAL:
        return
    entry = AuditEntry(call.client.clock.now(), call.identity.name, action, target, detail or {})
    try:
        await call.client.store.write_audit((entry,))
    except WindlassError:
        logger.exception("the audit could not be written: %s did %s to %s", entry.actor, action, target)


async def write_down_jobs(call: Call[Any], action: str, ids: Sequence[str], detail: Mapping[str, str]) -> None:
    """Write that the caller changed these jobs, if there is one; of many some are named."""
    if not ids:
        return
    if len(ids) == 1:
        await write_down(call, action, ids[0], detail)
        return
    named = " ".join(ids[:MOST_NAMED]) + (" ..." if len(ids) > MOST_NAMED else "")
    await write_down(call, action, f"{len(ids):,} jobs", {**detail, "ids": named})
