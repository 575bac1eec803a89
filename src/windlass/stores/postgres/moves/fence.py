"""The fence: the one function that locks the job of a claim, or finds that the claim is lost."""

from collections.abc import Collection, Sequence
from enum import Enum, auto
from typing import assert_never

from windlass.core.fence import refusal
from windlass.core.ids import JobId
from windlass.core.requests import Settled
from windlass.stores.postgres.rows import Standing, possible_token
from windlass.stores.postgres.work import Row, Statement, Work


class Lock(Enum):
    """How the jobs of claims are locked."""

    WAIT = auto()
    """Wait for jobs that another transaction has locked."""
    SKIP = auto()
    """Wait for no job."""
    NOTE = auto()
    """Lock nothing but the jobs of claims that hold, and wait for none."""
    SHARE = auto()
    """Only keep them from being taken back: other transactions may renew, note and cancel meanwhile."""


class Fence:
    """The jobs of some claims, which are locked until the transaction ends."""

    def __init__(self, rows: Sequence[Row]) -> None:
        """Read rows of the columns of a `Standing`; a last column says whether a job is locked by this transaction."""
        width = len(Standing._fields)
        # a job that is locked here is read twice: as it was when the statement began, and as it is
        unlocked = {row[1]: Standing(*row[:width]) for row in rows if len(row) > width and not row[width]}
        locked = {row[1]: Standing(*row[:width]) for row in rows if len(row) == width or row[width]}
        self._jobs: dict[JobId, Standing | None] = {**unlocked, **locked}
        self._elsewhere = unlocked.keys() - locked.keys()

    def held(self, job_id: JobId, token: str) -> Standing | Settled | None:
        """Return the job of a claim that holds, or why it does not; None where another transaction has locked it."""
        job = self._jobs.get(job_id)
        if job is None:
            return Settled.LOST
        refused = refusal(job.state, job.token, token)
        if refused is not None:
            return refused
        return None if job_id in self._elsewhere else job

    def write(self, job_id: JobId, job: Standing | None) -> None:
        """Let a further claim in this call find the job so; None for one that is gone."""
        self._jobs[job_id] = job


def fence(
    claims: Sequence[tuple[JobId, str]], lock: Lock, *, going: Collection[JobId] = (), patience: str | None = None
) -> Work[Fence]:
    """Lock the jobs of claims until the transaction ends.

    `going` are those jobs that may be deleted. Nothing is waited for longer than `patience` milliseconds.
    """
    ids = {job_id for job_id, _ in claims}
    match lock:
        case Lock.WAIT:
            rows = yield Statement("standing", {"ids": sorted(ids), "lock_timeout": patience})
        case Lock.SKIP:
            apart = {"ids": sorted(ids.difference(going)), "going": sorted(ids.intersection(going))}
            rows = yield Statement("standing_free", {**apart, "lock_timeout": patience})
        case Lock.NOTE:
            rows = yield Statement("noting", claim_names(claims))
        case Lock.SHARE:
            rows = yield Statement("fence", claim_names(claims))
        case _:
            assert_never(lock)
    return Fence(rows)


def claim_names(claims: Sequence[tuple[JobId, str]]) -> dict[str, object]:
    """Return the parameters of the statements that find claims by their tokens."""
    return {"ids": [job_id for job_id, _ in claims], "tokens": [possible_token(token) for _, token in claims]}
