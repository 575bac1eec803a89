"""A client on Redis whose replies to scripts get lost."""

from asyncio import Event
from collections import Counter
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any, Final

import msgspec

from proofs.lost_replies.lossy import Bench, Change
from proofs.readers.redis import Kept, RedisReader
from tests.redis.frames import Request
from tests.redis.proxy import Proxy
from windlass import Client
from windlass.stores.redis.scripts import script

NAMES: Final = {
    script(name).digest: name
    for file in (files("windlass.stores.redis") / "scripts").iterdir()
    if (name := file.name.removesuffix(".lua")) != file.name
}
"""Every script, by how the server knows it."""
LOOKS: Final = frozenset(
    (
        "audit", "due_in", "due_schedules", "get", "glance", "jobs", "kinds", "kv_get", "kv_scan", "layout", "minutes",
        "queue_of_schedule", "queue_settings", "queues", "schedules", "servers", "stats", "stranded",
    )
)  # fmt: skip
"""Scripts that change nothing."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class RedisBench(Bench):
    """A bench whose second look is at the keys, past the proxy."""

    def __init__(self, proxy: Proxy, client: Client, reader: RedisReader, direct: Any) -> None:  # noqa: ANN401
        super().__init__(client)
        self._proxy = proxy
        self._reader = reader
        self._direct = direct

    def know_all_scripts(self) -> None:
        """Let the server know every script, so that none is answered by an error the first time."""
        for name in NAMES.values():
            self._direct.script_load(script(name).text)

    def lose(self, change: Change, *, twice: bool) -> tuple[Event, Event | None]:  # noqa: ARG002 - one script does all
        first = self._proxy.drop_reply(_changes)
        return first, self._proxy.drop_reply(lambda request: first.is_set() and _changes(request)) if twice else None

    def lose_no_more(self) -> None:
        self._proxy.plans.clear()

    def jobs_in(self, queue: str) -> list[str]:
        return [job.decode() for job in self._direct.zrange(self._reader.key(f"jobs|{queue}"), 0, -1)]

    def payloads_in(self, queue: str) -> dict[str, bytes]:
        return {job.id: job.row.payload for job in self._kept_in(queue)}

    def held_in(self, queue: str) -> list[tuple[str, str, int, int]]:
        return [
            (job.id, job.claim.token or "", job.claim.attempt, job.claim.delivery)
            for job in self._kept_in(queue)
            if job.row.state == "running"
        ]

    def states_in(self, queue: str) -> dict[str, int]:
        return dict(Counter(job.row.state for job in self._kept_in(queue)))

    def parents_in(self, queue: str) -> list[str | None]:
        return [job.more[2] for job in self._kept_in(queue)]

    def state(self, job: str) -> tuple[str, int, int] | None:
        kept = self._kept(job)
        return (kept.row.state, kept.row.attempt, kept.row.delivery) if kept.fields else None

    def deliveries(self, job: str) -> list[tuple[int, str]]:
        ended = [
            msgspec.msgpack.decode(each) for each in self._direct.lrange(self._reader.key(f"history|{job}"), 0, -1)
        ]
        return [(delivery, outcome) for delivery, _, _, _, _, outcome, _ in ended]

    def lease_end(self, job: str) -> datetime:
        leased = self._reader.key(f"leased|{self._kept(job).row.queue}")
        return EPOCH + timedelta(microseconds=int(self._direct.zscore(leased, job)))

    def lock_holders(self, name: str) -> list[str]:
        lock = self._direct.get(self._reader.key(f"lock|{name}"))
        return [] if lock is None else [msgspec.msgpack.decode(lock)[0]]

    def let_come_due(self, schedule: str) -> None:
        seconds, micros = self._direct.time()
        now = seconds * 1_000_000 + micros
        self._direct.hset(self._reader.key(f"schedule|{schedule}"), "next_run_at", now)
        self._direct.zadd(self._reader.key("schedules_due"), {schedule: now})

    def _kept_in(self, queue: str) -> list[Kept]:
        return [self._kept(job) for job in self.jobs_in(queue)]

    def _kept(self, job: str) -> Kept:
        return Kept(job, self._direct.hgetall(self._reader.key(f"job|{job}")))


def _changes(request: Request) -> bool:
    return request.name == b"EVALSHA" and NAMES[request.words[1].decode()] not in LOOKS
