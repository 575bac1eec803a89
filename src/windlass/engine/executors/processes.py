"""Child processes that handlers run in, so that they can be killed."""

import asyncio
import logging
import os
from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

from windlass.client.failure import failure_of
from windlass.core.clock import Rng
from windlass.core.job import Failure, Job, PreparedJob, Token
from windlass.core.verdict import GivenBack, Outcome, Raised
from windlass.engine.executors.messages import Begin, Ended, Noted, Ready, Tell, ToParent, outcome
from windlass.engine.executors.spawned import Spawned
from windlass.engine.job_fields import fields_of
from windlass.handlers.registered import Registered
from windlass.system import SystemRng

logger = logging.getLogger("windlass")

IDLE_FOR: Final = 60.0
"""Seconds after which a child process that nobody needs ends."""
STARTING: Final = os.cpu_count() or 1
"""How many interpreters start at once: more would only slow each other down, and the machine."""
GRACE: Final = 1.0
"""Seconds between SIGTERM and SIGKILL when all children are ended."""


class ChildAttempt(Protocol):
    """An attempt, as its child process needs it; what the child notes comes back to it on the event loop."""

    @property
    def job(self) -> Job:
        """The job as it was claimed."""
        ...

    @property
    def token(self) -> Token:
        """The fence of the claim."""
        ...

    @property
    def lease(self) -> float:
        """Seconds that the claim is held at a time."""
        ...

    @property
    def log_from(self) -> int:
        """From which level on the standard log is kept."""
        ...

    def note(self, level: str, text: str) -> None:
        """Keep a log line with the job."""
        ...

    def progress(self, done: float, total: float | None, note: str | None) -> None:
        """Keep how far the job is."""
        ...


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How an attempt in a child process ended.

    `next_jobs` and `kv_writes` commit with a success. `settled`: a transaction of the child has settled the claim
    already. `died` says how, when the child process itself ended.
    """

    outcome: Outcome
    next_jobs: list[PreparedJob] | None = None
    kv_writes: dict[bytes, bytes | None] | None = None
    settled: bool = False
    died: str | None = None


class ChildRun:
    """One attempt in a child process, or in line for one."""

    def __init__(self, number: int, registered: Registered, attempt: ChildAttempt, pool: "Processes") -> None:
        """Be in line."""
        self.ended: asyncio.Future[ChildEnd] = asyncio.get_running_loop().create_future()
        self.number = number
        self.attempt = attempt
        self._registered = registered
        self._pool = pool
        self._member: Member | None = None
        self._reason: str | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process that it runs in; None while it waits for one."""
        return None if self._member is None else self._member.process.pid

    def tell(self, reason: str) -> None:
        """Tell the code why it should stop; the first reason stays. May be called from any thread."""
        if self._reason is None:
            self._reason = reason
            if self._member is not None:
                self._member.process.send(Tell(self.number, reason))

    def terminate(self) -> None:
        """Send SIGTERM to the child; one that waits in line is given back."""
        if self._member is None:
            self._pool.forget(self)
        elif self._member.run is self:
            self._member.spent = True
            self._member.process.terminate()

    def kill(self) -> None:
        """Send SIGKILL to the child; one that waits in line is given back."""
        if self._member is None:
            self._pool.forget(self)
        elif self._member.run is self:
            self._member.spent = True
            self._member.process.kill()

    def begin(self, member: "Member", draw: float) -> None:
        """Run in a child."""
        self._member = member
        handler, attempt, reason = self._registered.function, self.attempt, self._reason
        name = handler.__module__, handler.__qualname__, self._registered.kind
        member.process.send(
            Begin(self.number, *name, attempt.job, attempt.token, attempt.lease, draw, reason, attempt.log_from)
        )
        # a word from another thread may have gone ahead of the begin, and was not understood
        if self._reason is not None and reason is None:
            member.process.send(Tell(self.number, self._reason))

    def end(self, end: ChildEnd) -> None:
        """Tell whoever waits."""
        if not self.ended.done():
            self.ended.set_result(end)


class Member:
    """A child process of a pool: what it runs, and whether it may run more."""

    def __init__(self, pool: "Processes") -> None:
        """Start a process."""
        self._pool = pool
        self.run: ChildRun | None = None
        self.ready = False
        self.spent = False
        self.timer: asyncio.TimerHandle | None = None
        self.process = Spawned(self._hear, self._died)

    def rest(self, seconds: float) -> None:
        """End after a while, unless there is more to run."""
        self.timer = asyncio.get_running_loop().call_later(seconds, self._pool.dismiss, self)

    def wake(self) -> None:
        """Rest no longer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _hear(self, message: ToParent) -> None:
        match message:
            case Ready():
                self.ready = True
                self._pool.serve()
            case Noted() if self.run is not None and self.run.number == message.run:
                _pass_on(message, self.run.attempt)
            case Ended() if self.run is not None and self.run.number == message.run:
                run, self.run = self.run, None
                self._pool.free(self)
                run.end(ChildEnd(outcome(message), message.next_jobs, message.kv_writes, message.settled))
            case _:
                # a thread that an earlier attempt left behind
                pass

    def _died(self, how: str) -> None:
        self.wake()
        run, self.run = self.run, None
        self._pool.bury(self)
        if run is not None:
            run.end(_death(how, ready=self.ready))


class Processes:
    """A pool of child processes: made as needed, used again, and replaced when they die.

    All of it is used on one event loop, except where a method says otherwise. A child ends when its server does.
    """

    def __init__(self, *, most: int, rng: Rng | None = None, idle_for: float = IDLE_FOR) -> None:
        """Have at most `most` children; further attempts wait in line."""
        self._most = most
        self._rng = rng or SystemRng()
        self._idle_for = idle_for
        self._members: set[Member] = set()
        self._idle: list[Member] = []
        self._line: deque[ChildRun] = deque()
        self._count = 0

    @property
    def busy(self) -> int:
        """How many children run something, or are about to end."""
        return len(self._members) - len(self._idle)

    def start(self, registered: Registered, attempt: ChildAttempt) -> ChildRun:
        """Run an attempt in a child, or put it in line for one; `ended` of what this returns tells how it went."""
        self._count += 1
        run = ChildRun(self._count, registered, attempt, self)
        self._line.append(run)
        self.serve()
        return run

    async def close(self, grace: float = GRACE) -> None:
        """End all children; what waits in line is given back.

        Those that run something get SIGTERM, and after `grace` seconds all that are left get SIGKILL.
        """
        for run in list(self._line):
            self.forget(run)
        for member in list(self._idle):
            self.dismiss(member)
        for member in self._members:
            if member.run is not None:
                member.run.terminate()
        if left := [member.process.gone for member in self._members]:
            await asyncio.wait(left, timeout=grace)
        for member in self._members:
            member.process.kill()
        if left := [member.process.gone for member in self._members]:
            await asyncio.wait(left)

    def forget(self, run: ChildRun) -> None:
        """Give back an attempt that waits in line."""
        if run in self._line:
            self._line.remove(run)
            run.end(ChildEnd(GivenBack()))

    def dismiss(self, member: Member) -> None:
        """Let an idle child end."""
        member.wake()
        member.spent = True
        self._idle.remove(member)
        member.process.hang_up()

    def free(self, member: Member) -> None:
        """Take back a child whose attempt has ended."""
        if member.spent:
            member.process.hang_up()
        else:
            self._idle.append(member)
            member.rest(self._idle_for)
            self.serve()

    def bury(self, member: Member) -> None:
        """Forget a child that has died."""
        self._members.discard(member)
        if member in self._idle:
            self._idle.remove(member)
        self.serve()

    def serve(self) -> None:
        """Let those in line run in children that idle, or in new ones."""
        while self._line and (self._idle or self._may_start()):
            run = self._line.popleft()
            try:
                member = self._idle.pop() if self._idle else self._new()
            except Exception as error:
                job = run.attempt.job
                logger.exception("no child process could be started for job %s", job.id, extra=fields_of(job))
                run.end(ChildEnd(Raised(failure_of(error), error)))
            else:
                member.wake()
                member.run = run
                run.begin(member, self._rng.random())

    def _may_start(self) -> bool:
        starting = sum(not member.ready for member in self._members)
        return len(self._members) < self._most and starting < STARTING

    def _new(self) -> Member:
        member = Member(self)
        self._members.add(member)
        return member


def _pass_on(noted: Noted, attempt: ChildAttempt) -> None:
    if noted.progress is not None:
        attempt.progress(*noted.progress)
    else:
        attempt.note(noted.level, noted.text)


def _death(how: str, *, ready: bool) -> ChildEnd:
    message = f"the child process {how}"
    if not ready:
        message += (
            " before it was ready, and its stderr says why; a program that starts a server needs "
            "if __name__ == '__main__': around it"
        )
    return ChildEnd(Raised(Failure(message, "ChildDied")), died=how)
