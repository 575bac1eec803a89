"""The lines of a store on Redis: who stands in them, and who should."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Self

from proofs.readers.sqlite import Row

PLACE_BYTES = 20
"""Priority, time and number, which a place among ready jobs begins with."""
FINISHED = ("succeeded", "dead", "cancelled")


class Lines(NamedTuple):
    """The ids in each line of one queue."""

    queue: str
    all: list[str]
    ready: list[tuple[str, str]]
    """Kind and id of each."""
    due: list[str]
    leased: list[str]
    ended: dict[str, list[str]]
    dead: list[str]

    @property
    def by_state(self) -> dict[str, list[str]]:
        return {"pending": [job for _, job in self.ready], "scheduled": self.due, "running": self.leased, **self.ended}

    @classmethod
    def read(cls, client: Any, prefix: str, queue: str) -> Self:  # noqa: ANN401 - the driver's types are of no help
        """Read all of them in one step."""
        kinds = sorted(kind.decode() for kind in client.smembers(f"{prefix}kinds|{queue}"))
        names = [f"{name}|{queue}" for name in ("jobs", "due", "leased", "dead")]
        names += [f"ended|{queue}|{state}" for state in FINISHED]
        names += [f"ready|{queue}|{kind}" for kind in kinds]
        once = client.pipeline(transaction=True)
        for name in names:
            once.zrange(f"{prefix}{name}", 0, -1)
        jobs, due, leased, dead, *others = once.execute()
        ready = [
            (kind, member[PLACE_BYTES:].decode())
            for kind, members in zip(kinds, others[len(FINISHED) :], strict=True)
            for member in members
        ]
        ended = {state: _ids(members) for state, members in zip(FINISHED, others, strict=False)}
        return cls(queue, _ids(jobs), ready, _ids(due), _ids(leased), ended, _ids(dead))


def counts_off(lines: Sequence[Lines], rows: Collection[Row]) -> list[str]:
    """Return the lines whose length is another than a full count of their jobs."""
    states = Counter((row.queue, row.state) for row in rows)
    queues = Counter(row.queue for row in rows)
    off = [
        f"{each.queue}: {state} kept {len(ids)}, counted {states[each.queue, state]}"
        for each in lines
        for state, ids in each.by_state.items()
        if len(ids) != states[each.queue, state]
    ]
    off += [f"{each.queue}: kept {len(each.all)}" for each in lines if len(each.all) != queues[each.queue]]
    return off + [f"{queue} is not among the queues" for queue in queues.keys() - {each.queue for each in lines}]


def misplaced(lines: Sequence[Lines], rows: Mapping[str, Row]) -> list[str]:
    """Return who stands in a line and is not there, or is in another state, queue or kind than the line is for."""
    said: list[str] = []
    for each in lines:
        for state, ids in each.by_state.items():
            said += [f"{job} among {state} of {each.queue}" for job in ids if _where(rows, job) != (each.queue, state)]
        said += [
            f"{job} in the line of {kind}" for kind, job in each.ready if job in rows and (rows[job].kind or "") != kind
        ]
        said += [f"{job} among all of {each.queue}" for job in each.all if job not in rows]
        said += [f"{job} among dead and not ended so" for job in set(each.dead) ^ set(each.ended["dead"])]
    return said


def _where(rows: Mapping[str, Row], job: str) -> tuple[str, str] | None:
    return (rows[job].queue, rows[job].state) if job in rows else None


def _ids(members: list[bytes]) -> list[str]:
    return [member.decode() for member in members]
