"""Looks at running jobs again and again, for whoever reads their log while it is written."""

import logging
from collections.abc import Callable
from typing import Final

from windlass.api.job_calls import Followed
from windlass.api.jobs import log_told, progress_told
from windlass.client.new_lines import new_lines
from windlass.core.clock import Clock, Spawn
from windlass.core.errors import StoreUnavailable
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.store import Store
from windlass.http.reply import event
from windlass.http.subscribers import Subscribers
from windlass.http.wakes import Wakes

logger = logging.getLogger("windlass.http")

LOOK_EVERY: Final = 0.5
"""Seconds between two looks at a job: a line is shown within about a second of its being written, on every store."""
TOGETHER: Final = 10
"""Jobs in one look: each may have megabytes of payload and log."""


class Reader:
    """One who reads the log of a job: gets what is new since the last event, however slowly it reads."""

    def __init__(self, job: Job, clock: Clock, *, reaches: Callable[[Job], bool]) -> None:
        """Begin with all that `job` has; one that `reaches` denies later is gone for this reader."""
        self._reaches = reaches
        self._job: Job | None = job
        self._told: Job | None = None
        self._wakes = Wakes(clock)
        self._wakes.wake()

    def see(self, job: Job | None) -> None:
        """Take what a look has shown."""
        self._job = job if job is not None and self._reaches(job) else None
        if self._job is None or self._told is None or _shown(self._job) != _shown(self._told):
            self._wakes.wake()

    def end(self) -> None:
        """Let the reader end, as it is."""
        self._wakes.end()

    async def wait(self, silence: float) -> bytes | None:
        """Return an event of what is new: none after `silence` seconds, and None when the job has ended."""
        return self._event() if await self._wakes.woken(silence) else None

    def _event(self) -> bytes:
        job, told = self._job, self._told
        if job is None:
            self.end()
            return event(Followed(state=None, ended=True))
        if told is not None and _shown(job) == _shown(told):
            return b""
        self._told = job
        if job.state.finished:
            self.end()
        return event(
            Followed(
                state=job.state,
                delivery=job.delivery,
                progress=progress_told(job.progress),
                lines=log_told(new_lines(() if told is None else told.log, job.log)),
                ended=job.state.finished,
            )
        )


class Following:
    """The readers of one process, and one look at a time for all of them: each job is asked for once, whoever reads."""

    def __init__(self, store: Store, *, clock: Clock, spawn: Spawn) -> None:
        """Begin with nobody."""
        self._store = store
        self._clock = clock
        self.readers = Subscribers[JobId, Reader](self._look_if_there, spawn=spawn, name="windlass following")
        self._away = False

    async def _look_if_there(self) -> None:
        await self._clock.sleep(LOOK_EVERY)
        try:
            await self._look()
        except StoreUnavailable as error:
            if not error.retryable:
                raise
            if not self._away:
                logger.warning("cannot look at the jobs whose log is read, and go on trying: %s", error)
            self._away = True
        else:
            self._away = False

    async def _look(self) -> None:
        ids = list(self.readers.by_key)
        for begin in range(0, len(ids), TOGETHER):
            some = ids[begin : begin + TOGETHER]
            for job_id, job in zip(some, await self._store.get(some), strict=True):
                for reader in self.readers.of(job_id):
                    reader.see(job)


def _shown(job: Job) -> tuple[object, ...]:
    return job.state, job.delivery, job.progress, job.log
