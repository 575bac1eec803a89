"""What is in the store of commit 04839a3 that the tests of upgrades begin with, and how a store is read as JSON.

`write.py` runs this with the code of that commit, the tests with the present code.
"""

import base64
import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, cast

from windlass import Claim, Client, NewJob, Unique
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Failure, Note, PreparedJob, Progress
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.verdict import ToDead
from windlass.testing import FakeClock
from windlass.testing.conformance.given import a_job, settlement

DAY: Final = timedelta(days=1)
YEAR: Final = 365 * DAY
QUEUES: Final = ("default", "email", "reports")
REQUEST: Final = "01900000-0000-7000-8000-00000000abcd"
"""The id of a request whose receipt is in the store."""


def number(of: int) -> str:
    """Return the id of the job with this number."""
    return f"01900000-0000-7000-8000-{of:012}"


PENDING, SCHEDULED, PAUSED, RUNNING, STOPPING, SUCCEEDED, DEAD, CANCELLED, FAILED, RETRIED, SNOOZED = map(
    number, range(11)
)
KEY_OF_ENDED, KEY_OF_KIND, KEY_OF_TENANT, KEY_OF_CLAIMED, REQUESTED = map(number, range(11, 16))


def requested_job() -> PreparedJob:
    """Return the job of the request whose receipt is in the store."""
    return a_job("default", payload=b"once")._replace(id=JobId(REQUESTED))


async def fill(client: Client, clock: FakeClock) -> dict[str, str]:
    """Write something of all that a store keeps; return the tokens of claims, by the ids of their jobs."""
    claims = [await _end_jobs(client), *await _run_jobs(client, clock)]
    await _put_back(client)
    await _let_wait(client)
    await _write_beside(client, clock)
    return {claim.job.id: claim.token for claim in claims}


async def _claimed(client: Client, job: str, **options: Any) -> Claim:  # noqa: ANN401 - as `enqueue` takes them
    await client.enqueue("email", b"\x00\xffhello", id=job, **options)
    claim = await client.claim("email", lease=YEAR)
    assert claim is not None
    assert claim.job.id == job
    return claim


async def _end_jobs(client: Client) -> Claim:
    """Let jobs end; return the claim of the first."""
    done = await _claimed(client, SUCCEEDED, kind="send", headers={"trace": "1"})
    await client.ack(done, {"sent": 1})
    dead = await _claimed(client, DEAD, kind="send", max_attempts=1)
    # an exception that is raised here would bring the path of this file along
    failure = Failure("the address is wrong", "ValueError", 'File "jobs.py", line 7, in send')
    await client.store.settle([settlement(dead, ToDead(failure))])
    await client.enqueue("email", b"", id=CANCELLED, tenant="acme")
    await client.cancel(CANCELLED)
    await client.ack(await _claimed(client, KEY_OF_ENDED, unique=Unique("by-time", until=YEAR)))
    return done


async def _run_jobs(client: Client, clock: FakeClock) -> list[Claim]:
    """Let jobs run; return their claims."""
    unique = Unique("by-end", until="finished", match_payload=True)
    running = await _claimed(client, RUNNING, kind="send", unique=unique, tenant="acme")
    lines = [("info", "half of it is done"), ("warning", "the rest takes longer")]
    await client.store.note([Note(running.job.id, running.token, Progress(1, 2), lines)])
    clock.advance(90)
    stopping = await _claimed(client, STOPPING)
    await client.cancel(STOPPING)
    return [running, stopping, await _claimed(client, KEY_OF_CLAIMED, unique="by-claim")]


async def _put_back(client: Client) -> None:
    await client.nack(await _claimed(client, FAILED, kind="send"), "no answer", delay=DAY)
    await client.snooze(await _claimed(client, SNOOZED), DAY)
    await client.dead_letter(await _claimed(client, RETRIED), "no such address")
    await client.retry(RETRIED)
    again = await client.claim("email", lease=YEAR)
    assert again is not None
    await client.nack(again, "no answer", delay=DAY)


async def _let_wait(client: Client) -> None:
    await client.enqueue_many(
        [
            NewJob("email", b"p", id=PENDING, kind="send", priority=10, headers={"trace": "2"}, tenant="acme"),
            NewJob("email", b"s", id=SCHEDULED, delay=DAY, max_attempts=7),
            NewJob("email", b"k", id=KEY_OF_KIND, kind="send", unique=Unique("by-kind", scope="kind")),
        ]
    )
    key = Unique("by-tenant", scope="global", until="finished", on_conflict="raise")
    await client.enqueue("default", b"t", id=KEY_OF_TENANT, tenant="acme", unique=key, kv={"job": b"written with it"})
    await client.enqueue("reports", b"r", id=PAUSED)
    await client.pause("reports")
    await client.store.enqueue([requested_job()], request_id=REQUEST)


async def _write_beside(client: Client, clock: FakeClock) -> None:
    now = clock.now()
    await client.schedules.put("nightly", "30 2 * * *", NewJob("reports", b"n", kind="build"), timezone="Europe/Berlin")
    await client.schedules.put("poll", timedelta(minutes=5), NewJob("default", b"m"), overlap="skip")
    await client.schedules.pause("poll")
    await client.schedules.put("hourly", "0 * * * *", NewJob("default", b"h", headers={"h": "1"}), catch_up="all")
    await client.schedules.run_now("hourly")
    await client.kv.put("plain", b"value")
    await client.kv.put(b"\xff\x00", b"\x00\xff")
    await client.store.lock("nightly", "holder", YEAR)
    await client.store.beat(ServerRecord("server-1", "web", "web-1", 1, "0.1.0", now, now, ("email",), ("send",)))
    await client.store.write_timings([TimingCount(now.replace(second=0), "email", "send", "ran", 3, 2)])
    await client.store.write_audit([AuditEntry(now, "ann", "pause", "reports", {"why": "a test"})])


async def contents(store: Store, start: datetime) -> dict[str, Any]:
    """Return all that can be read of a store, as JSON; `start` is a time before its first job."""
    listed = await store.jobs(JobFilter(), after=None, limit=100)
    end = start + DAY
    _, schedules = await store.schedules()
    found = {
        "jobs": {job.id: job for job in await store.get([job.id for job in listed]) if job is not None},
        "glances": await store.glance([job.id for job in listed]),
        "queues": {queue.queue: queue for queue in await store.stats()},
        "paused": await store.paused(QUEUES),
        "minutes": sorted(await store.minutes(since=start - DAY, until=end)),
        "timings": sorted(await store.timings(since=start - DAY, until=end)),
        "schedules": {schedule.id: schedule for schedule in schedules},
        "values": await store.kv_scan(b"", after=None, limit=100),
        "servers": await store.servers(),
        "audit": await store.audit(limit=100),
    }
    plain: dict[str, Any] = json.loads(json.dumps(_plain(found)))
    return plain


def _plain(value: object) -> object:
    """Return a value as JSON: records with the names of their fields, bytes as base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return str(value)
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "_fields"):
        return {name: _plain(getattr(value, name)) for name in cast("tuple[str, ...]", vars(type(value))["_fields"])}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in cast("Mapping[object, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in cast("Sequence[object]", value)]
    return value
