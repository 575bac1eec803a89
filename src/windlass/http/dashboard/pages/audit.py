"""What people did."""

import re
from typing import Annotated, ClassVar, Final
from urllib.parse import urlencode

from msgspec import Meta

from windlass.api.operations import AUDIT
from windlass.api.shape import Asked
from windlass.core.looks import AuditEntry
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.view import Facts, View

MOST: Final = 1_000
_TO_JOBS: Final = ("retry", "cancel", "reschedule")
_TO_QUEUES: Final = ("pause", "resume")
_ID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class AuditAsked(Asked, kw_only=True):
    """How many entries."""

    limit: Annotated[int, Meta(ge=1, le=MOST)] = 100


class Audit(View[AuditAsked]):
    """The newest entries of the audit."""

    name: ClassVar = "audit"
    title: ClassVar = "Audit"
    path: ClassVar = "/audit"
    roles: ClassVar = AUDIT.roles
    asks = AuditAsked
    regions: ClassVar = ("entries",)

    async def look(self, seen: Seen, asked: AuditAsked) -> Facts:
        """Return the newest entries."""
        entries = await seen.store.audit(limit=asked.limit + 1)
        rows = [(entry, page_of(entry)) for entry in entries[: asked.limit]]
        return {"entries": rows, "more": len(entries) > asked.limit, "most": MOST}


def page_of(entry: AuditEntry) -> str | None:
    """Return the path of the page that shows what something was done to; None where there is none, or none any more."""
    action, target = entry.action, entry.target
    if action in _TO_JOBS and _ID.fullmatch(target):
        return f"/jobs/{target}"
    if action in _TO_QUEUES:
        return f"/jobs?{urlencode({'queue': target})}"
    if action.endswith(" schedule") and action != "remove schedule":
        return f"/schedules?{urlencode({'id': target})}"
    return None
