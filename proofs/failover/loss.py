"""What a standby had not received when it took over, read off the old primary's own log and tables."""

import re
import subprocess
from typing import NamedTuple

from tests.postgres.pair import Pair, data_of, run_on

COMMIT = re.compile(r"tx: +(\d+), .*desc: COMMIT ")
PATIENCE = 60.0


class Takeover(NamedTuple):
    """Where the new primary left the history of the old one."""

    timeline: int
    lsn: str


class Left(NamedTuple):
    """A job as the old primary had it in the end."""

    state: str
    delivery: int
    replicated: bool
    """Whether the standby had received the job's last change."""


class Loss(NamedTuple):
    """What the old primary had, and where the standby stopped receiving."""

    commits: int
    """How many transactions the old primary had committed that the standby had not received."""
    jobs: dict[str, Left]

    def changed(self, *, replicated: bool) -> set[str]:
        """Return the jobs whose last change was, or was not, received."""
        return {job for job, left in self.jobs.items() if left.replicated is replicated}

    def never_received(self) -> set[str]:
        """Return the jobs whose enqueue was not received, as far as that can be told: nothing came after it."""
        return {job for job, left in self.jobs.items() if not left.replicated and left.delivery == 0}

    def settled(self, *, replicated: bool) -> set[str]:
        """Return the jobs whose success was, or was not, received."""
        return {job for job in self.changed(replicated=replicated) if self.jobs[job].state == "succeeded"}


def read_loss(pair: Pair) -> Loss:
    """Compare the old primary, which is down, with what the new one took over; it is up and read-only afterwards."""
    unreceived = _commits_behind(pair, _takeover(pair))
    pair.return_read_only()
    rows = run_on(pair.standby, "select id::text, state, delivery, xmin::text::bigint from windlass_job")
    jobs = {job: Left(state, delivery, xmin not in unreceived) for job, state, delivery, xmin in rows}
    return Loss(len(unreceived), jobs)


def _takeover(pair: Pair) -> Takeover:
    """Return the last line of the new primary's history."""
    newest = max((data_of(pair.primary) / "pg_wal").glob("*.history"), key=lambda path: int(path.stem, 16))
    timeline, lsn, _ = newest.read_text().strip().splitlines()[-1].split("\t")
    return Takeover(int(timeline), lsn)


def _commits_behind(pair: Pair, takeover: Takeover) -> set[int]:
    """Return the transactions that the old primary committed behind that point."""
    log = data_of(pair.standby) / "pg_wal"
    # it complains at the end of the log, where there is no further record, and has told all then
    told = subprocess.run(
        [
            pair.standby.programs / "pg_waldump",
            f"--path={log}",
            f"--timeline={takeover.timeline}",
            f"--start={takeover.lsn}",
            "--rmgr=Transaction",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return {int(found[1]) for line in told.stdout.splitlines() if (found := COMMIT.search(line))}
