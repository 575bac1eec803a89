"""Who owns what a server keeps of a store: by the layout of `keys.py`, read past the store and its scripts."""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final, TypeAlias

import msgspec

from tests.redis.asking import Word, as_sent, connected
from tests.redis.keys import keys_of, servers_of

STAY: Final = {
    "meta",
    "seq",
    "queues",
    "queue_numbers",
    "totals",
    "revision",
    "audit",
    "kv",
    "kv_keys",
    "paused",
    "settings",
    "moved",
}
"""Keys that stay for as long as the store: each is one, or one for each queue."""
EXPIRE: Final = {"minute", "timing", "receipt", "lock", "timed"}
"""Keys that go by themselves."""
LINES: Final = {"ready": "pending", "due": "scheduled", "leased": "running", "dead": "dead"}
"""Which state the jobs of a line are in; those in `ended` have it in their name."""
OWN: Final = {"job", "history", "log", "jobs", "kinds", "hold", "ended", *LINES}
OF_SCHEDULES: Final = {"schedule", "schedules", "schedules_due", "schedules_at"}
OF_SERVERS: Final = {"servers", "servers_started", "servers_seen"}
OF_PARCELS: Final = {"unpacked", "unpacked_at"}
KINDS: Final = STAY | EXPIRE | OWN | OF_SCHEDULES | OF_SERVERS | OF_PARCELS
_PLACE: Final = 20
"""How many bytes a member of a ready line begins with."""
_OF_SIX: Final = b"\x96".decode(errors="surrogateescape")
"""Begins an array of the six values of a head, which are kept without."""
_READS: Final[dict[str, tuple[str, *tuple[int, ...]]]] = {
    "string": ("GET",),
    "hash": ("HGETALL",),
    "list": ("LLEN",),
    "set": ("SMEMBERS",),
    "zset": ("ZRANGE", 0, -1),
}

Kept: TypeAlias = dict[str, tuple[Any, bool]]
"""What each key of a prefix holds, and whether it expires."""


def strays(url: str) -> list[str]:
    """Tell of every key of a store that nobody will ever delete, and of every member of one that leads nowhere."""
    [server] = servers_of(url)
    found: dict[str, Kept] = {}
    keys = sorted(keys_of(url))
    with closing(connected(server)) as client:
        types = _all(client, [("TYPE", key) for key in keys])
        held = _all(client, [(_READS[each][0], key, *_READS[each][1:]) for key, each in zip(keys, types, strict=True)])
        expiries = _all(client, [("PTTL", key) for key in keys])
    for key, holds, expires in zip(keys, held, expiries, strict=True):
        prefix, _, name = key.partition("}|")
        found.setdefault(prefix, {})[name] = holds, expires > 0
    return sorted({f"{prefix}}}|{stray}" for prefix, kept in found.items() for stray in _Prefix(kept).strays()})


def _all(client: Any, commands: list[tuple[str, *tuple[Word, ...]]]) -> list[Any]:  # noqa: ANN401 - as it is connected
    with client.pipeline(transaction=False) as pipeline:
        for name, *words in commands:
            pipeline.execute_command(name, *map(as_sent, words))
        answers: list[Any] = pipeline.execute()
    return answers


def kind_of(name: str) -> str:
    """Return what a key is, as the layout calls it: what follows the tag, up to the next bar."""
    return name.partition("|")[0]


class _Prefix:
    """All that is kept under one hash tag."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._jobs = {name.removeprefix("job|"): held for name, (held, _) in kept.items() if name.startswith("job|")}

    def strays(self) -> Iterator[str]:
        for name, (held, expires) in self._kept.items():
            kind, _, rest = name.partition("|")
            if kind not in KINDS:
                yield f"{name}: the layout knows no such key"
            elif kind in EXPIRE and not expires:
                yield f"{name}: it never expires"
            elif kind in OWN:
                yield from self._of_jobs(name, kind, rest, held, expires=expires)
        yield from self._of_the_store()

    def _of_jobs(self, name: str, kind: str, rest: str, held: Any, *, expires: bool) -> Iterator[str]:  # noqa: ANN401
        match kind:
            case "job":
                yield from self._lines_missing(rest, held)
            case "history" | "log":
                yield from [f"{name}: its job is gone"] * (rest not in self._jobs)
            case "hold":
                yield from [f"{name}: nobody holds it"] * (not expires and not self._is_held(rest))
            case "kinds":
                missing = [one for one in held if f"ready|{rest}|{one}" not in self._kept]
                yield from (f"{name}: there is no line of {one!r}" for one in missing)
            case _:
                yield from self._not_theirs(name, kind, rest, held)

    def _lines_missing(self, job: str, held: dict[str, str]) -> Iterator[str]:
        queue, kind = _packed_at(1, _OF_SIX + held["head"]), _packed_at(2, _OF_SIX + held["head"])
        state = held.get("state", "pending")
        lines = {
            "pending": [f"ready|{queue}|{kind}"],
            "scheduled": [f"due|{queue}"],
            "running": [f"leased|{queue}"],
            "dead": [f"ended|{queue}|dead", f"dead|{queue}"],
        }.get(state, [f"ended|{queue}|{state}"])
        for line in (f"jobs|{queue}", *lines):
            if job not in self._members(line):
                yield f"job|{job}: it is {state} and does not stand in {line}"
        if state == "pending" and kind not in self._kept.get(f"kinds|{queue}", ((), False))[0]:
            yield f"job|{job}: its kind is not known to the queue"

    def _not_theirs(self, name: str, kind: str, rest: str, held: list[str]) -> Iterator[str]:
        state = rest.rpartition("|")[2] if kind == "ended" else LINES.get(kind)
        for job in self._members(name):
            there = self._jobs.get(job)
            if there is None:
                yield f"{name}: its job {job} is gone"
            elif state is not None and there.get("state", "pending") != state:
                yield f"{name}: its job {job} is {there.get('state', 'pending')}"
        if len(set(self._members(name))) != len(held):
            yield f"{name}: a job stands there twice"

    def _members(self, line: str) -> list[str]:
        held: list[str] = self._kept.get(line, ([], False))[0]
        if not line.startswith("ready|"):
            return held
        return [_as_bytes(member)[_PLACE:].decode() for member in held]

    def _is_held(self, name: str) -> bool:
        job = self._jobs.get(_packed_at(0, self._kept[f"hold|{name}"][0]), {})
        return "key" in job and _packed_at(0, job["hold"]) == name

    def _of_the_store(self) -> Iterator[str]:
        whole = {name: set(held) for name, (held, _) in self._kept.items() if not isinstance(held, int)}
        schedules = {name.removeprefix("schedule|") for name in whole if name.startswith("schedule|")}
        holds = {name.removeprefix("hold|") for name in whole if name.startswith("hold|")}
        names = set(whole.get("queues", ()))
        for name, wanted, found in (
            ("kv_keys", whole.get("kv", set()), whole.get("kv_keys", set())),
            ("schedules", schedules, whole.get("schedules", set())),
            ("schedules_due", schedules, schedules | whole.get("schedules_due", set())),
            *((name, whole.get("servers", set()), whole.get(name, set())) for name in OF_SERVERS),
            ("timed", whole.get("timed", set()), whole.get("timed", set()) & holds),
            ("unpacked_at", whole.get("unpacked", set()), whole.get("unpacked_at", set())),
            ("queues", names, names | {_queue_of(name) for name in whole if re.match("(jobs|totals)", name)}),
        ):
            if wanted != found:
                yield f"{name}: of {sorted(wanted)} it has {sorted(found)}"


def _queue_of(name: str) -> str:
    return name.split("|")[1]


def _as_bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _packed_at(place: int, text: str) -> str:
    """Return one text of those that are packed together; others may be bytes, packed as if they were text."""
    parts = msgspec.msgpack.decode(_as_bytes(text), type=list[msgspec.Raw])
    return msgspec.msgpack.decode(parts[place], type=str)
