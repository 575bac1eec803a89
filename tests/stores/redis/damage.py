"""What may be wrong with the keys of one job, and must not be in the way of others."""

from typing import Final

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of
from windlass.core.ids import JobId

OF_JOBS: Final[dict[str, bytes | None]] = {
    "key of another type": None,
    "claim": b"\x91",
    "short claim": b"\xa1x",
    "hold": b"\x91",
    "head": b"\x91",
    "empty head": b"",
    "short head": b"\x01\x01",
    "longer head": b"\x01\xa1q\xa1k\x01\x01\x01\x01",
    "too long head": b"\x01\xa1q\xa1k\x01\x01\x01\xc0",
    "other head": b"\x01\xa1q\xa1k\xc2\x01\x01",
    "body": b"\x91",
    "empty body": b"",
    "short body": b"\x92\xa3raw\xc4\x02x",
    "long body": b"\x92\xa3raw\xc5\x00\x01xx",
    "longer body": b"\x92\xa3raw\xc6\x00\x01\x00\x00x",
    "another body": b"\x93\xa3raw\xc4\x01x",
    "text for a body": b"\x92\xa3raw\xa1x",
    "more": b"\x91",
    "long more": b"\x95\x80\xc0\xc0\xc0\xc0\xc0",
    "short more": b"\x91\x80",
    "other more": b"\x01",
}
"""Which field of a job is damaged, and what it has then."""


def inflict(url: str, job_id: JobId, what: str) -> None:
    """Damage what a job has, or whoever holds the one unique key that there is."""
    [server] = servers_of(url)
    keys = f"{{{prefix_of(url)}}}|"
    value = OF_JOBS.get(what)
    if value is not None:
        ask(server, "HSET", f"{keys}job|{job_id}", what.rsplit(" ", maxsplit=1)[-1], value)
        return
    [key] = ask(server, "KEYS", f"{keys}hold|*") if what.startswith("holder") else [f"{keys}job|{job_id}"]
    ask(server, "DEL", key)
    ask(server, "SADD", key, "member")
