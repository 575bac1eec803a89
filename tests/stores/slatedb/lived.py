"""A store in which much has happened, the same whichever store it is."""

from datetime import timedelta
from typing import Any, Final

from windlass.core.ids import JobId, new_id
from windlass.core.job import Claim, Failure, Note, PreparedJob, Progress
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import ClaimRequest, KvWrite, Settlement
from windlass.core.retention import KEEP_ALL
from windlass.core.schedule import Schedule
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.unique import Unique, hold
from windlass.core.verdict import ToDead, ToRetry, ToSucceeded, Verdict
from windlass.testing import FakeClock

QUEUES: Final = ("email", "email/2", "sms", "empty", "unknown")
LARGE: Final = bytes(range(256)) * 20
MINUTE: Final = timedelta(minutes=1)
TRACEBACK: Final = "at a line\n" * 500


def numbered(number: int, *, millis: int | None = None) -> JobId:
    """Return the id of a job by its number; they rise with it."""
    return new_id(millis=1_760_000_000_000 + (number if millis is None else millis), randomness=number.to_bytes(10))


def job(number: int, queue: str = "email", *, kind: str | None = None, **others: Any) -> PreparedJob:  # noqa: ANN401 - fields of the job
    """Return a job by its number."""
    return PreparedJob(
        numbered(number), queue, kind, b"%d" % number, "raw", {"n": str(number)}, None, 1000, 3, None, None, None, {}
    )._replace(**others)


async def live(store: Store, clock: FakeClock) -> None:
    """Let jobs come to every state, with and without large parts, and write whatever else a store keeps."""
    await store.enqueue([job(1), job(2, payload=LARGE, priority=5), job(3, kind="a"), job(4, kind="b", tenant="t")])
    clock.advance(1)
    unique = hold(Unique("k", until="finished"), queue="sms", kind=None, tenant=None, payload=b"")
    await store.enqueue(
        [job(24, "sms", unique=unique._replace(name="queue||sms|t", until="time", hold_for=MINUTE * 9))]
    )
    await store.enqueue(
        [job(5, "sms", unique=unique), job(6, "sms", delay=MINUTE), job(7, "email/2", delay=2 * MINUTE)]
    )
    await store.enqueue([job(n, "email/2", kind="c", priority=n % 3, schedule_id="s") for n in range(8, 24)])
    clock.advance(70)
    await _work_on(store, clock)
    clock.advance(70)
    await store.enqueue([job(n, "email", kind="ab"[n % 2], payload=LARGE) for n in range(30, 40)])
    await store.cancel([numbered(31), numbered(32), numbered(33)], KEEP_ALL)
    await store.retry([numbered(31)])
    await store.delete([numbered(32)])
    await store.set_paused("empty", paused=True)
    await store.set_paused("email/2", paused=True)
    await _write_others(store, clock)


async def _work_on(store: Store, clock: FakeClock) -> None:
    claims = {claim.job.id: claim for claim in await _claims(store, "email", "email/2", "sms")}
    by_number = {number: claims[numbered(number)] for number in range(1, 24) if numbered(number) in claims}
    clock.advance(1)
    line = "info", "x" * 300
    await store.note([_note(by_number[2], Progress(1, 2, "half"), *[line] * 8), _note(by_number[3], None, line)])
    await store.cancel([numbered(3)], KEEP_ALL)
    failure = Failure("boom", "ValueError", TRACEBACK)
    ends: dict[int, Verdict] = {
        1: ToSucceeded(b"small", "raw"),
        2: ToSucceeded(LARGE, "raw"),
        4: ToDead(failure),
        5: ToRetry(timedelta(minutes=5), failure),
        12: ToDead(Failure("no")),
        9: ToRetry(timedelta(0), failure),
    }
    await store.settle([Settlement(by_number[n].job.id, by_number[n].token, verdict) for n, verdict in ends.items()])
    await store.settle([Settlement(by_number[10].job.id, by_number[10].token, ToSucceeded(), keep=False)])


async def _claims(store: Store, *queues: str) -> list[Claim]:
    found: list[Claim] = []
    for queue in queues:
        found += (await store.claim(ClaimRequest([queue], 10, MINUTE, None, "worker"))).jobs
    return found


def _note(claim: Claim, progress: Progress | None, *lines: tuple[str, str]) -> Note:
    return Note(claim.job.id, claim.token, progress, lines)


async def _write_others(store: Store, clock: FakeClock) -> None:
    for schedule_id in ("b", "a", "c/1"):
        await store.write_schedule(
            Schedule(id=schedule_id, rule="every 60s", queue="email", codec="raw", priority=1, max_attempts=1),
            expected=None,
        )
    now = clock.now()
    for server in ("two", "one"):
        await store.beat(ServerRecord(server, server, "host", 1, "0", now, now, ("email",), details={"x": "y"}))
    await store.write_audit([AuditEntry(now, "me", "pause", f"queue {n}", {"n": str(n)}) for n in range(5)])
    minute = now.replace(second=0, microsecond=0)
    for queue in ("sms", "email", "email/2"):
        await store.write_timings([TimingCount(minute, queue, "c", "ran", n, n + 1) for n in (2, 16)])
        await store.write_timings([TimingCount(minute - MINUTE, queue, "", "waited", 2, 5)] * 2)
    for key in (b"a", b"a\xff", b"a\xff\xff1", b"a\xff\0", b"b", b"\xff", b"\xff\xff", b"\0"):
        await store.kv_write(KvWrite(key, b"of " + key))
