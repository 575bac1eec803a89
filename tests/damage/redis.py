"""How the fields of a job are damaged in a Redis: those of its hash, and what is packed in them."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing
from typing import Any, Final

import msgspec
from redis import Redis
from redis.exceptions import ResponseError

from tests.damage.table import DamagedStore, Damager
from tests.redis.asking import dsn_of
from tests.redis.keys import prefix_of, servers_of
from windlass.core.job import Job
from windlass.core.store import Store

HEAD: Final = ("seq", "queue", "kind", "priority", "max_attempts", "created_at")
CLAIM: Final = ("token", "attempt", "delivery", "claimed_at", "worker")
PARTS: Final[Mapping[str, tuple[str, int]]] = {
    **{name: ("head", at) for at, name in enumerate(HEAD)},
    "codec": ("body", 0),
    "payload": ("body", 1),
    **{name: ("claim", at) for at, name in enumerate(CLAIM)},
    **{name: ("more", at) for at, name in enumerate(("headers", "tenant", "parent_id", "schedule_id", "limit_key"))},
}
"""The fields of a job that are packed, with others, in a field of its hash: which one, and where in it."""
WITHOUT_BEGIN: Final = {"head": b"\x96", "claim": b"\x95"}
"""What these fields are kept without."""
INTEGERS: Final = ("seq", "priority", "max_attempts", "created_at", "attempt", "delivery", "claimed_at")
FIELDS: Final = {
    "head": "head",
    "body": "body",
    "claim": "claim",
    "more": "more",
    "hold": "hold",
    "state": "state",
    "run_at": "run_at",
    "finished_at": "finished_at",
    "last_error": "error",
    "result": "result",
    "result_codec": "result_codec",
    "progress": "progress",
    "cancel_requested": "cancel",
    "unique_key": "key",
    "logged": "logged",
}
"""The fields of the hash, by the names of `Job` where it has them."""
OF_BYTES: Final[Mapping[str, bytes | None]] = {
    "wrong type": b"\x07text",
    "empty": b"",
    "huge": b"9" * 100_000,
    "out of range": b"9223372036854775807",
    "not UTF-8": b"\xff",
    "missing": None,
}
KEYS: Final = ("job", "history", "log", "holder")
"""Keys of a job, each of one type."""
NOT_UTF8: Final = msgspec.Raw(b"\xa1\xff")
OF_INTEGERS: Final[Mapping[str, object]] = {
    "wrong type": "text",
    "empty": "",
    "huge": 2**63 - 1,
    "out of range": -(2**63),
    "missing": None,
}
OF_TEXTS: Final[Mapping[str, object]] = {
    "wrong type": 7,
    "empty": "",
    "huge": "x" * 100_000,
    "not UTF-8": NOT_UTF8,
    "missing": None,
}
OF_PAYLOADS: Final = {**OF_TEXTS, "wrong type": "text", "empty": b"", "huge": b"x" * 100_000}
OF_HEADERS: Final = {**OF_TEXTS, "wrong type": {"name": 7}, "huge": {"name": "x" * 100_000}}
SPECIAL: Final = {"payload": OF_PAYLOADS, "headers": OF_HEADERS}

_raws = msgspec.msgpack.Decoder(list[msgspec.Raw])


@asynccontextmanager
async def damager(url: str, store: Store) -> AsyncGenerator[Damager]:
    """Write through a connection of our own, as an operator or another program would."""
    del store
    [server] = servers_of(url)
    with closing(_connected(server)) as client:
        fields = _Fields(client, f"{{{prefix_of(url)}}}|")

        async def damage(job: Job, field: str, what: str) -> bool | None:
            try:
                return fields.damage(job, field, what)
            except ResponseError:
                return False

        yield damage


class _Fields:
    """The stored fields of jobs."""

    def __init__(self, client: Any, keys: str) -> None:  # noqa: ANN401 - the driver's types are of no help here
        self._client = client
        self._keys = keys

    def damage(self, job: Job, field: str, what: str) -> bool | None:
        """Damage a field in one way, if there is such a damage."""
        key = f"{self._keys}job|{job.id}"
        if field in PARTS:
            values = SPECIAL.get(field, OF_INTEGERS if field in INTEGERS else OF_TEXTS)
            return self._damage_part(key, *PARTS[field], values[what]) if what in values else None
        if field in FIELDS:
            value = OF_BYTES[what]
            # a field of a hash has no type, and a packed one is bytes
            if value is None:
                self._client.hdel(key, FIELDS[field])
            else:
                self._client.hset(key, FIELDS[field], value)
            return True
        if field == "lease_expires_at":
            return self._damage_lease(job, what)
        return self._damage_key(job, field, what)

    def _damage_part(self, key: str, field: str, at: int, value: object) -> bool | None:
        stored = self._client.hget(key, field)
        if stored is None:
            return None
        begin = WITHOUT_BEGIN.get(field, b"")
        values: list[object] = [*_raws.decode(begin + stored)]
        values[at] = value
        self._client.hset(key, field, msgspec.msgpack.encode(values).removeprefix(begin))
        return True

    def _damage_lease(self, job: Job, what: str) -> bool | None:
        """Damage the place among the running jobs, a number, which alone says when the lease ends."""
        line = f"{self._keys}leased|{job.queue}"
        if self._client.zscore(line, job.id) is None:
            return None
        scores = {"wrong type": "text", "empty": "", "huge": "1e300", "out of range": "inf", "not UTF-8": b"\xff"}
        if what == "missing":
            self._client.zrem(line, job.id)
        else:
            self._client.execute_command("ZADD", line, scores[what], job.id)
        return True

    def _damage_key(self, job: Job, family: str, what: str) -> bool | None:
        key: str | None = f"{self._keys}{family}|{job.id}"
        if family == "holder":
            # a key is freed by the end of its job
            key = next(iter(self._client.keys(f"{self._keys}hold|*|{job.unique_key}")), None)
        if key is None or (family == "job" and what == "missing"):
            # a server that is allowed to forget may have forgotten it: that is no damage
            return None
        if what == "missing":
            self._client.delete(key)
        elif family == "holder" or what == "wrong type":
            self._client.delete(key)
            self._client.set(key, OF_BYTES[what] if family == "holder" and what != "wrong type" else b"text")
            if what == "wrong type" and family == "holder":
                self._client.delete(key)
                self._client.sadd(key, "member")
        elif family == "job":
            return None
        else:
            self._client.rpush(key, OF_BYTES[what])
        return True


def _connected(server: str) -> Any:  # noqa: ANN401 - the driver's types are of no help here
    driver: Any = Redis
    return driver.from_url(dsn_of(server), protocol=2)


OF_HEAD: Final = (*HEAD, "head")
STORE: Final = DamagedStore(
    name="redis",
    title="Redis",
    fields=(
        *("job", "head", *HEAD, "body", "codec", "payload", "claim", *CLAIM),
        *("more", "headers", "tenant", "parent_id", "schedule_id", "limit_key"),
        *("hold", "unique_key", "holder", "state", "run_at", "lease_expires_at", "finished_at", "last_error", "result"),
        *("result_codec", "progress", "cancel_requested", "history", "log", "logged"),
    ),
    needed_by={
        "ack": ("job", *OF_HEAD, "claim", "token", "delivery", "state", "hold"),
        "nack": ("job", *OF_HEAD, "claim", *CLAIM[:3], "state", "hold", "run_at", "history"),
        "rescue": ("lease_expires_at",),
        "move": ("state", "queue", "history", "log"),
    },
    damager=damager,
)
