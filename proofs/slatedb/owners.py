"""Owners of a store, one after the other: `windlass worker` as it is started, watched, killed and waited for."""

import os
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proofs.children import eventually, go_on, stand_still
from proofs.commands import Command
from proofs.ledger import Tail
from proofs.serving import Place, lives

# rescue and pruning look through the store: the more often, the more calls are served together with such a look
OPTIONS: Final = ("--concurrency", "20", "--rescue-interval", "500ms", "--prune-interval", "100ms")
GRACE: Final = 10.0
MOST_ATTEMPTS: Final = 50
COMES_UP: Final = 60.0
LOOK_EVERY: Final = 0.005


@dataclass(frozen=True)
class Order:
    """What an owner does: how many jobs it brings, and how long they take and are claimed for, in seconds.

    Who has brought them tells when nothing is left to do.
    """

    bring: int = 0
    longest: float = 0.1
    lease: float = 2.0
    request: float = 10.0
    """Seconds after which a call of the object store is given up, and made again."""
    keep: bool = True
    """Whether the records of jobs stay when they have succeeded."""


WORK_OFF: Final = Order()
MANY: Final = 1_000_000
"""More jobs than any owner comes to bring: there is work whenever something is done to it."""


class Owner:
    """One start of `windlass worker`: a parent, and the process that owns the store while it lives."""

    def __init__(self, place: Place, name: str, order: Order) -> None:
        """Let it do what `order` says, beside serving."""
        self.name = name
        options = [*OPTIONS, "--shutdown-timeout", f"{GRACE:g}s", "--lease", f"{order.lease:g}s"]
        more = {
            "PROOF_BRING": str(order.bring),
            "PROOF_LONGEST": f"{order.longest:g}",
            "PROOF_LEASE": f"{order.lease:g}",
            "PROOF_REQUEST": f"{order.request:g}",
            **({} if order.keep else {"WINDLASS_KEEP_SUCCEEDED": "0"}),
        }
        self.command = Command(
            place, options, max_attempts=MOST_ATTEMPTS, name=name, app="proofs.slatedb.owned:app", more=more
        )

    @property
    def pids(self) -> list[int]:
        """The processes below the parent."""
        parent = self.command.process.pid
        try:
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        except OSError:
            return []
        # one that was killed is there until its parent has noticed
        pids = [pid for pid in map(int, children) if lives(pid)]
        self.command.children |= {*pids}
        return pids

    def kill(self, *, whole: bool) -> bool:
        """Kill the process that owns the store, and first its parent when it is to be the `whole`."""
        pids = self.pids
        if whole:
            self.command.process.kill()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        gone = eventually(lambda: not any(map(lives, pids)), 10)
        if whole:
            gone = self.command.process.wait(10) == -signal.SIGKILL and gone
        return gone and bool(pids)

    def has_ended(self) -> bool:
        """Whether neither the parent nor any process that it had lives."""
        return self.command.process.poll() is not None and not any(map(lives, self.command.children))

    def stand_still(self) -> None:
        """Stop the processes below the parent, until they are killed or told to go on."""
        for pid in self.pids:
            stand_still(pid)

    def go_on(self) -> None:
        """Let them go on."""
        for pid in self.pids:
            go_on(pid)

    def close(self) -> None:
        """Leave no process behind."""
        self.command.__exit__()


class Seen:
    """What the ledger tells of the owners while they work."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self.loaded_at: dict[str, float] = {}
        """When each process had loaded its app, and had not begun to open the store, by its name."""
        self.answered_at: dict[str, float] = {}
        """When each process was last told that something is done."""
        self.brought = 0
        self.settled: Counter[str] = Counter()
        self._done: set[str] = set()
        self._pids: dict[int, str] = {}
        self._inside: dict[str, set[tuple[str, int]]] = {}

    def look(self) -> None:
        """Read on."""
        for entry in self._tail.look():
            match entry.event:
                case "opened":
                    self.loaded_at[entry.process] = entry.at - float(entry.note)
                    self._pids[entry.count] = entry.process
                case "begun":
                    self._inside.setdefault(entry.process, set()).add((entry.job, entry.delivery))
                case "ended":
                    self._inside.setdefault(entry.process, set()).discard((entry.job, entry.delivery))
                case "settled":
                    self.answered_at[entry.process] = entry.at
                    self.settled[entry.process] += 1
                case "ok":
                    self.answered_at[entry.process] = entry.at
                    self.brought += len(entry.note.split())
                case "done":
                    self._done.add(entry.process)
                case _:
                    pass
        self._tail.entries.clear()

    def process_of(self, owner: Owner) -> str | None:
        """Return the name of the process of this start that lives and has opened the store."""
        self.look()
        return next((self._pids[pid] for pid in owner.pids if pid in self._pids), None)

    def is_inside(self, process: str) -> bool:
        """Whether the process has begun a job that it has not ended."""
        self.look()
        return bool(self._inside.get(process))

    def has_brought(self, jobs: int) -> bool:
        """Whether so many jobs were brought, by all owners together."""
        self.look()
        return self.brought >= jobs

    def is_done(self, process: str) -> bool:
        """Whether the process has told that nothing is left to do."""
        self.look()
        return process in self._done

    def has_opened(self, owner: Owner) -> str:
        """Wait until the store is open; return the name of the process that has it."""
        if not eventually(lambda: self.process_of(owner) or owner.command.process.poll() is not None, COMES_UP):
            message = f"{owner.name} did not open the store within {COMES_UP:g} s"
            raise RuntimeError(message)
        process = self.process_of(owner)
        if process is None:
            message = f"{owner.name} ended with {owner.command.process.returncode}"
            raise RuntimeError(message)
        return process

    def has_worked(self, process: str, enough: int, seconds: float) -> bool:
        """Wait until a process has settled so many jobs and is inside of one; return whether it came to that."""
        return eventually(lambda: self.is_inside(process) and self.settled[process] >= enough, seconds, LOOK_EVERY)


def work_off(place: Place, name: str, seen: Seen, seconds: float, order: Order = WORK_OFF) -> list[str]:
    """Let a last owner do what is left, and stop it; return what did not go well."""
    owner = Owner(place, name, order)
    try:
        process = seen.has_opened(owner)
        done = eventually(lambda: seen.is_done(process), seconds, 0.05)
        began = time.monotonic()
        code, _ = owner.command.stop(GRACE)
        took = time.monotonic() - began
    finally:
        owner.close()
    said = [] if done else [f"{name} did not come to an end within {seconds:g} s"]
    return [*said, *([f"{name} ended with {code} after {took:.1f} s"] if code else [])]
