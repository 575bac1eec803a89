"""A fleet over HTTP: the serving process is killed again and again, and replies get lost on the way.

Workers and producers reach `windlass serve` through a proxy. For a share of all calls it waits for the reply, keeps it
and resets the connection: what was asked for is done, and nobody is told. The jobs are in a file of SQLite, which a
second reader looks at in the end.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from proofs.children import eventually
from proofs.fleet import fleet
from proofs.fleet.http_database import HttpDatabase
from proofs.fleet.lossy_proxy import LossyProxy, ProxyThread
from proofs.http.http_serving import ServingProcess, admitted
from proofs.report import Report
from proofs.serving import Place
from proofs.stores import name_store

PROMISE = (
    "however often the process that serves a file is killed, and whatever replies are lost: no job is lost or doubled, "
    "none is settled twice, no attempt is charged for it, and every worker works on within 5 s after it is back"
)
KILLED = "the serving process"
PATIENCE = 20.0
OF_EVERY_LIFE = {
    "enqueue": ("/api/v1/jobs", "/api/v1/jobs/batches"),
    "claim": ("/api/v1/claims",),
    "settle": ("/api/v1/claims/settle",),
}
"""The calls of which replies must have been lost."""


@dataclass(frozen=True)
class Plan:
    jobs: int = 20_000
    workers: int = 10
    producers: int = 4
    crashes: int = 20
    """Kills of the serving process."""
    cuts: int = 20
    """Connections that are reset beside that, whether they wait for an answer or not."""
    lost: float = 0.05
    """The share of replies that are lost."""
    longest_down: float = 2.0
    longest: float = 1.6
    """Seconds of the longest job: ten workers with twenty slots each have all of them at work, and are not the load."""
    ahead: int = 1_000
    lease: float = 30.0
    """Longer than any kill lasts: no claim may be taken back."""
    rescue_after: float = 3.0
    """Seconds that a serving process gives workers to come back before it rescues: half of its own lease."""
    back_within: float = 5.0
    seed: int = 1

    @property
    def fleet(self) -> fleet.Plan:
        return fleet.Plan(
            jobs=self.jobs,
            servers=self.workers,
            producers=self.producers,
            kills=0,
            cuts=self.cuts,
            crashes=self.crashes,
            longest_down=self.longest_down,
            longest=self.longest,
            lease=self.lease,
            back_within=self.back_within,
            ahead=self.ahead,
            seed=self.seed,
            killed=KILLED,
        )


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("http-fleet", PROMISE)
    serving = ServingProcess(folder, WINDLASS_RESCUE_INTERVAL="1s", WINDLASS_LEASE=f"{2 * plan.rescue_after:g}s")
    proxy = LossyProxy(serving.url, plan.lost, plan.seed)
    with admitted(serving.tokens), serving, ProxyThread(proxy) as thread:
        database = HttpDatabase(serving, thread)
        place = Place(database.url, folder / "ledger", serving.file)
        done = fleet.work(place, database, plan.fleet)
        # what is left behind is looked at: the last one takes those out that were killed, and then itself
        eventually(lambda: len(place.reader.servers()) <= 1, plan.rescue_after + PATIENCE)
        code = serving.stop()
    name_store(report, place)
    _check_losses(report, plan, proxy.requests, proxy.lost)
    fleet.check(report, place, plan.fleet, done, database.at_work)
    rescued = [each for each in place.fleet_reader.deliveries() if each.outcome == "rescued"]
    report.never("claims taken back, though nothing was down for as long as a lease", rescued)
    report.never("serving processes that did not end well", [f"exit code {code}"] if code else [])
    return report


def _check_losses(report: Report, plan: Plan, requests: int, lost: Counter[str]) -> None:
    """Replies were lost, also those that tell of a change."""
    report.figure("workers", plan.workers)
    report.figure("calls", requests)
    report.figure("replies lost", f"{lost.total():,} ({lost.total() / max(requests, 1):.1%})")
    for path, count in sorted(lost.items()):
        report.figure(f"replies lost: {path}", count)
    report.needs(f"replies lost of {plan.lost:.0%} of the calls", given=lost.total() >= requests * plan.lost * 0.8)
    for call, paths in OF_EVERY_LIFE.items():
        report.needs(f"lost replies to {call}", given=any(lost[path] for path in paths))
