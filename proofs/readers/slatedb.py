"""A store on SlateDB as a second reader sees it, which shares no code with Windlass."""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import version
from typing import Any, Final

import msgspec

from proofs.readers.slatedb_dump import BIAS, Dump, Kept, dump, jobs_in, micros, names_in
from proofs.readers.sqlite import Claimed, Delivery, Row

NO_JOBS: Final = "there are no jobs"
UNFINISHED: Final = ("scheduled", "pending", "running")
INDEXES: Final = b"ldre"
PART: Final = 18
"""Bytes of the key of a part: the family, the job and the letter."""


class SlateReader:
    """A folder or a bucket, as it is when it is first looked at: another look takes another reader."""

    def __init__(self, url: str) -> None:
        self._url = url

    @cached_property
    def found(self) -> Dump:
        """Every key and value."""
        return dump(self._url)

    @cached_property
    def kept(self) -> Mapping[str, Kept]:
        """Every job, also one that stands nowhere."""
        return {job.id: job for job in jobs_in(self.found)}

    def jobs(self) -> dict[str, Row]:
        return {job.id: _row(job) for job in self.kept.values()}

    def headers(self) -> dict[str, dict[str, str]]:
        """Return the headers of each job that has some."""
        return {job.id: job.headers for job in self.kept.values() if job.headers}

    def enqueued_at(self) -> dict[str, float]:
        """Return when each job was enqueued, in seconds since 1970."""
        return {job.id: job.created_at.timestamp() for job in self.kept.values()}

    def tokens(self) -> dict[str, str]:
        """Return the token of each job's last claim."""
        return {job.id: job.token for job in self.kept.values() if job.token}

    def unfinished(self) -> int:
        """Return how many jobs have not come to an end."""
        return sum(job.state in UNFINISHED for job in self.kept.values())

    def waiting(self) -> int:
        """Return how many jobs wait to be claimed."""
        return sum(job.state == "pending" for job in self.kept.values())

    def outcomes(self) -> dict[tuple[str, int], str]:
        """Return how deliveries ended that were not a job's last, by job and number."""
        return {(each.job, each.delivery): each.outcome for each in self.deliveries()}

    def deliveries(self) -> list[Delivery]:
        """Return the deliveries that ended otherwise than by a success."""
        return [
            Delivery(job.id, delivery, worker or "", outcome, began.timestamp(), ended.timestamp())
            for job in self.kept.values()
            for delivery, _, began, ended, worker, outcome, _ in job.history
            if outcome != "succeeded"
        ]

    def claims(self) -> list[Claimed]:
        """Return when servers claimed, in the order of time."""
        last = [Claimed(job.worker or "", job.claimed_at.timestamp()) for job in self.kept.values() if job.claimed_at]
        before = [Claimed(each.worker, each.started_at) for each in self.deliveries()]
        return sorted(last + before, key=lambda claim: claim.at)

    def totals(self) -> tuple[int, int]:
        """Return how many jobs were ever counted as enqueued, and as succeeded."""
        totals = [queue[7] for queue in self._queues().values()]
        return sum(each[0] for each in totals), sum(each[1] for each in totals)

    def servers(self) -> list[str]:
        """Return the servers that are registered."""
        return [key[1:].decode() for key in self.found if key.startswith(b"w")]

    def pids(self) -> dict[str, int]:
        """Return the processes of the servers that are registered."""
        records = {key[1:].decode(): value for key, value in self.found.items() if key.startswith(b"w")}
        return {name: msgspec.msgpack.decode(value)["pid"] for name, value in records.items()}

    def counts_off(self) -> list[str]:
        """Return the queues whose kept counts differ from a full count of their jobs."""
        counted = Counter((job.queue, _column(job)) for job in self.kept.values())
        kept = Counter[tuple[str, object]]()
        for name, queue in self._queues().items():
            kept += Counter({(name, state): count for state, count in zip(_COLUMNS, queue[1:6], strict=True)})
            kept += Counter({(name, ("pending", kind)): count for kind, count in queue[6]})
        return [
            f"{queue}: {what} kept {kept[queue, what]}, counted {counted[queue, what]}"
            for queue, what in kept.keys() | counted.keys()
            if kept[queue, what] != counted[queue, what]
        ]

    def integrity(self) -> list[str]:
        """Return jobs that do not stand where they must, and what belongs to no job."""
        jobs = self.kept.values()
        places = {job.place for job in jobs}
        standing = {key for key in self.found if key[0] in INDEXES}
        orders = dict(job.order for job in jobs)
        numbered = {key: value for key, value in self.found.items() if key.startswith(b"o")}
        parts = {b"p" + job.name + letter for job in jobs for letter in job.apart}
        apart = {key for key in self.found if key.startswith(b"p")}
        said = [f"a place that no job has: {place!r}" for place in standing - places]
        said += [f"a job that does not stand in its place: {place!r}" for place in places - standing]
        said += [f"a number without its job, or a job without: {key!r}" for key, _ in orders.items() ^ numbered.items()]
        said += [f"a part without its job, or a job without: {key!r}" for key in parts ^ apart]
        said += [f"a place before that at which its index is said to begin: {place!r}" for place in self._overlooked()]
        said += [f"a record under the key of another: {job.id}" for job in jobs if b"j" + job.name not in self.found]
        return said if jobs else [*said, NO_JOBS]

    def left_behind(self) -> list[str]:
        """Return nothing: an owner that has ended leaves no more than its objects."""
        return []

    def version(self) -> str:
        """Return what the jobs are kept in."""
        where = "a bucket of SeaweedFS" if self._url.startswith("slatedb+s3") else "a folder"
        return f"SlateDB {version('slatedb')} in {where}"

    def _overlooked(self) -> list[bytes]:
        """Return the places that nobody finds who goes by where the indexes of a queue are said to begin."""
        begins = [each for queue in self._queues().values() for each in queue[8]]
        return [key for index, begin in begins for key in self.found if key.startswith(index) and key < begin]

    def _queues(self) -> dict[str, list[Any]]:
        """Return of each queue: whether it is paused, five counts, its lines, its totals, where its indexes begin."""
        return {
            names_in(key[1:])[0]: msgspec.msgpack.decode(value)
            for key, value in self.found.items()
            if key.startswith(b"q")
        }


_COLUMNS: Final = ("scheduled", "running", "succeeded", "dead", "cancelled")
"""The counts in the record of a queue, beside its lines."""


def _column(job: Kept) -> object:
    return ("pending", job.kind) if job.state == "pending" else job.state


def _row(job: Kept) -> Row:
    finished_at = None if job.finished_at is None else micros(job.finished_at) - BIAS
    return Row(job.id, job.queue, job.payload, job.state, job.attempt, job.delivery, job.kind, finished_at)
