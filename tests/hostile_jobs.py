"""One text in every field of a store that can hold it, written as any program that reaches the store could."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Final

from windlass.core.ids import JobId, new_id
from windlass.core.job import Claim, Failure, Note, PreparedJob, Progress
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import ClaimRequest, Settlement
from windlass.core.schedule import Schedule
from windlass.core.store import Store
from windlass.core.unique import Hold
from windlass.core.verdict import ToCancelled, ToDead, ToRetry, ToSucceeded, Verdict

_LEASE: Final = timedelta(hours=1)
_count: Final = count()


@dataclass(frozen=True)
class Filled:
    """The jobs that were written, by what became of them."""

    ids: Mapping[str, JobId]
    schedule: str


async def fill(
    store: Store,
    text: str,
    *,
    now: datetime,
    data: bytes | None = None,
    name: str | None = None,
    zone: str | None = None,
    parent: JobId | None = None,
) -> Filled:
    """Write the text into every field.

    `data` is payload and result instead, `name` the name of a queue and a kind, `zone` that of a time zone: one that is
    not known takes long to look for. `parent` is the job that those that have been claimed are enqueued by.
    """
    number = next(_count)
    filling = _Filling(
        store, text, now, name or f"queue-{number}", name or f"kind-{number}", zone or text, data, parent
    )
    ids = await filling.jobs()
    await store.write_schedule(filling.schedule(f"{text}{number}"), expected=None)
    await store.beat(filling.server(f"{text}#{number}"))
    await store.write_audit([AuditEntry(now, text, text, text, {"text": text, text: text}), *filling.targets(ids)])
    await store.set_paused(filling.queue, paused=True)
    return Filled(ids, f"{text}{number}")


@dataclass(frozen=True)
class _Filling:
    store: Store
    text: str
    now: datetime
    queue: str
    kind: str
    zone: str
    data: bytes | None
    parent: JobId | None

    @property
    def payload(self) -> bytes:
        if self.data is not None:
            return self.data
        return json.dumps({"text": self.text, self.text: [self.text, {"n": self.text}]}).encode()

    async def jobs(self) -> Mapping[str, JobId]:
        ends = ("retried", "dead", "succeeded", "cancelled", "running")
        made: dict[str, PreparedJob] = {
            end: self.job(priority, parent=self.parent) for priority, end in enumerate(ends)
        }
        await self.store.enqueue(list(made.values()))
        request = ClaimRequest((self.queue,), len(ends), _LEASE, worker=self.text)
        claims: dict[str, Claim] = dict(zip(ends, (await self.store.claim(request)).jobs, strict=True))
        await self.store.note([self.note(claim) for claim in claims.values()])
        for end, verdict in self.verdicts().items():
            await self.store.settle([Settlement(claims[end].job.id, claims[end].token, verdict)])
        waiting = {
            "pending": self.job(5, parent=made["dead"].id, codec="json"),
            "raw": self.job(6, codec=self.text, payload=self.text.encode(errors="surrogatepass")),
            "scheduled": self.job(7, parent=made["dead"].id, delay=_LEASE),
        }
        await self.store.enqueue(list(waiting.values()))
        return {name: each.id for name, each in {**made, **waiting}.items()}

    def job(
        self,
        priority: int,
        *,
        codec: str = "json",
        payload: bytes | None = None,
        parent: JobId | None = None,
        delay: timedelta | None = None,
    ) -> PreparedJob:
        number = next(_count)
        key = f"{self.text}{number}"
        return PreparedJob(
            id=new_id(millis=int(self.now.timestamp() * 1000) + number, randomness=number.to_bytes(10)),
            queue=self.queue,
            kind=self.kind,
            payload=self.payload if payload is None else payload,
            codec=codec,
            headers={"note": self.text, "windlass-secret": self.text, self.text: self.text},
            tenant=self.text,
            priority=priority,
            max_attempts=3,
            run_at=None,
            delay=delay,
            unique=Hold(f"queue||{self.queue}|{key}", key, "finished", None, "keep", match_payload=False, digest=b""),
            kv={},
            parent_id=parent,
            schedule_id=self.text,
            limit_key=self.text,
        )

    def note(self, claim: Claim) -> Note:
        return Note(claim.job.id, claim.token, Progress(1, 2, self.text), [(self.text, self.text), ("info", self.text)])

    def verdicts(self) -> Mapping[str, Verdict]:
        failure = Failure(self.text, self.text, f"Traceback (most recent call last):\n  {self.text}\n{self.text}")
        return {
            "retried": ToRetry(_LEASE, failure),
            "dead": ToDead(failure),
            "succeeded": ToSucceeded(self.payload, "json"),
            "cancelled": ToCancelled(self.text),
        }

    def schedule(self, id: str) -> Schedule:
        return Schedule(
            id=id,
            rule=self.text,
            timezone=self.zone,
            queue=self.queue,
            kind=self.kind,
            payload=self.payload,
            codec="json",
            headers={"note": self.text},
            tenant=self.text,
            priority=1,
            max_attempts=1,
            declared=True,
            next_run_at=self.now + _LEASE,
            last_run_at=self.now,
        )

    def server(self, id: str) -> ServerRecord:
        return ServerRecord(
            id=id,
            name=self.text,
            host=self.text,
            pid=1,
            version=self.text,
            started_at=self.now,
            seen_at=self.now,
            queues=(self.queue, self.text),
            kinds=(self.kind, self.text),
            schedules=(self.text,),
            running=1,
            details=dict.fromkeys(("memory", "slots", "stuck", "serves", "served", "owns", self.text), self.text),
        )

    def targets(self, ids: Mapping[str, JobId]) -> list[AuditEntry]:
        """Return entries about what there is, which pages may link to."""
        about = (("retry", ids["dead"]), ("pause", self.queue), ("run_schedule", self.text))
        return [AuditEntry(self.now, self.text, action, target, {"queue": self.text}) for action, target in about]
