"""A server with many jobs in line: what it needs of memory does not grow with them."""

from dataclasses import dataclass
from pathlib import Path

from proofs.children import Children, eventually
from proofs.ledger import Ledger, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from proofs.serving import QUEUE, Place, check_store, enqueue, serve
from windlass import NewJob, ServerConfig

PROMISE = "a server with a hundred thousand jobs in line stays under 100 MiB"
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Plan:
    jobs: int = 100_000
    most: int = 100 * MEBIBYTE
    seconds: float = 300


def prove(folder: Path, plan: Plan) -> Report:
    place = Place.within(folder)
    report = Report("memory", PROMISE)
    Ledger(place.ledger, "campaign").close()
    for _ in range(plan.jobs // 10_000 or 1):
        enqueue(place, [NewJob(QUEUE, {}, kind="at_once", headers={"x": "x" * 100})] * min(plan.jobs, 10_000))
    waiting = reader.unfinished(place.database)
    with Children(place.ledger) as children:
        server = children.start("server", serve, place, ServerConfig())
        assert server.pid is not None
        done = eventually(lambda: reader.unfinished(place.database) == 0, plan.seconds)
        peak = peak_of(server.pid)
        server.terminate()
        server.join(30)
        code = server.exitcode
    report.figure("jobs in line", waiting)
    report.figure("peak of its memory", f"{peak / MEBIBYTE:.1f} MiB")
    report.never(f"bytes over {plan.most // MEBIBYTE} MiB", range(max(0, peak - plan.most)))
    rows = reader.jobs(place.database)
    report.never(
        "jobs that did not succeed at once", [r for r in rows.values() if (r.state, r.attempt) != ("succeeded", 1)]
    )
    check_store(report, place, list(read(place.ledger)), kills=0)
    report.never("servers that did not end well", [] if code == 0 else [code])
    report.needs("all jobs done", given=done and waiting == plan.jobs)
    return report


def peak_of(pid: int) -> int:
    """Return the most memory that a process has had at once, as the kernel counts it."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
