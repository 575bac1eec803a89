"""A job that has only what each job has, and one that has a value in each field."""

from datetime import UTC, datetime
from typing import Final

from windlass.core.ids import JobId
from windlass.core.job import Delivery, Failure, Job, LogLine, Progress
from windlass.core.states import State

_NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
_LATER: Final = datetime(2026, 1, 31, 12, 0, 1, 250_000, tzinfo=UTC)

BARE: Final = Job(
    seq=1,
    id=JobId("019c1400-0000-7000-8000-000000000001"),
    queue="mail",
    kind=None,
    payload=b"\x00\xff",
    codec="raw",
    headers={},
    tenant=None,
    priority=1_000,
    state=State.PENDING,
    attempt=0,
    max_attempts=5,
    delivery=0,
    created_at=_NOON,
    run_at=_NOON,
    claimed_at=None,
    lease_expires_at=None,
    finished_at=None,
    worker=None,
    last_error=None,
    result=None,
    result_codec=None,
    progress=None,
    cancel_requested=False,
    unique_key=None,
    parent_id=None,
    schedule_id=None,
    limit_key=None,
)
FULL: Final = Job(
    seq=2,
    id=JobId("019c1400-0000-7000-8000-000000000002"),
    queue="mail",
    kind="send",
    payload=b'{"to": "ada"}',
    codec="json",
    headers={"trace": "1-2"},
    tenant="acme",
    priority=100,
    state=State.SCHEDULED,
    attempt=2,
    max_attempts=5,
    delivery=3,
    created_at=_NOON,
    run_at=_LATER,
    claimed_at=_NOON,
    lease_expires_at=_LATER,
    finished_at=_LATER,
    worker="worker-1",
    last_error="ValueError: no",
    result=b"[1]",
    result_codec="json",
    progress=Progress(1.5, 10.0, "sent"),
    cancel_requested=True,
    unique_key="ada",
    parent_id=BARE.id,
    schedule_id="daily",
    limit_key="smtp",
    history=(
        Delivery(2, 1, _NOON, _LATER, "worker-1", "failed", Failure("no", "ValueError", "Traceback", "shop"), _LATER),
        Delivery(3, 2, _LATER, None, "worker-2", None),
    ),
    log=(LogLine(_NOON, "info", "begins", 2),),
    damage="headers is not JSON",
)
JOBS: Final = {"bare": BARE, "full": FULL}
