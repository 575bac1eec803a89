"""The command line of the proofs."""

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from proofs import index, machine
from proofs.failover import failover, sentinel_failover
from proofs.fleet import fleet, http_fleet, redis_everysec, terminations
from proofs.http import crowds, http_fuzz
from proofs.kills import child_kills, failpoints, poison, producer_kills, schedules, server_kills, signals, stale, stops
from proofs.load import checkpoints, memory, moves, processes
from proofs.lost_replies import lost_replies
from proofs.remains import Remains
from proofs.report import Report, Verdict
from proofs.slatedb import faults as slatedb_faults
from proofs.slatedb import kills as slatedb_kills
from proofs.slatedb import lines as slatedb_lines
from proofs.slatedb import storage as slatedb_storage
from proofs.slatedb import takeover as slatedb_takeover
from proofs.transactions import exactly_once, late_commit, transactions


def restarts(scale: int) -> fleet.Plan:
    """Return the plan by which a database is gone again and again, with some seconds of work in between."""
    crashes = max(20 // scale, 1)
    return fleet.Plan(
        jobs=1_250 * (crashes + 1), kills=0, cuts=0, crashes=crashes, stops_too=True, longest_down=15, steady=True
    )


def on_a_cluster(scale: int) -> fleet.Plan:
    """Return the plan by which each master of a Cluster is killed twice, under jobs of several queues."""
    return fleet.Plan(
        jobs=20_000 // scale,
        queues=("default", "mail", "reports", "images", "billing", "search"),
        kills=max(30 // scale, 2),
        standstills=max(3 // scale, 1),
        cuts=max(60 // scale, 4),
        crashes=max(6 // scale, 1),
        longest_down=2.0,
    )


PARTS: dict[str, Callable[[Path, int], Report]] = {
    "processes": lambda folder, scale: processes.prove(folder, processes.Plan(jobs=40_000 // scale)),
    "producer-kills": lambda folder, scale: producer_kills.prove(
        folder, producer_kills.Plan(acknowledged=10_000 // scale, kills=max(50 // scale, 2))
    ),
    "stale": lambda folder, scale: stale.prove(folder, stale.Plan(stale=500 // scale)),
    "machine": lambda folder, scale: machine.prove(folder, machine.Plan(examples=2_000 // scale)),
    "failpoints": lambda folder, scale: failpoints.prove(folder, failpoints.Plan(stride=scale)),
    "checkpoints": lambda folder, scale: checkpoints.prove(folder, checkpoints.Plan(seconds=60 / scale)),
    "server-kills": lambda folder, scale: server_kills.prove(
        folder, server_kills.Plan(jobs=10_000 // scale, kills=max(50 // scale, 2))
    ),
    "poison": lambda folder, scale: poison.prove(folder, poison.Plan(rounds=max(10 // scale, 1))),
    "stops": lambda folder, scale: stops.prove(
        folder, stops.Plan(stops=100 // scale, jobs=15_000 // scale, locked=max(10 // scale, 1))
    ),
    "signals": lambda folder, scale: signals.prove(
        folder, signals.Plan(stops=100 // scale, jobs=25_000 // scale, early=max(10 // scale, 2))
    ),
    "child-kills": lambda folder, scale: child_kills.prove(folder, child_kills.Plan(kills=max(50 // scale, 2))),
    "crowds": lambda folder, scale: crowds.prove(folder, crowds.Plan(seconds=20 / scale)),
    "schedules": lambda folder, scale: schedules.prove(
        folder, schedules.Plan(seconds=60 / scale, kills=max(30 // scale, 4))
    ),
    "exactly-once": lambda folder, scale: exactly_once.prove(
        folder, exactly_once.Plan(jobs=10_000 // scale, kills=max(30 // scale, 1), stops=max(10 // scale, 1))
    ),
    "exactly-once-postgres": lambda folder, scale: exactly_once.prove(
        folder,
        exactly_once.Plan(jobs=10_000 // scale, kills=max(30 // scale, 1), stops=max(10 // scale, 1), store="postgres"),
    ),
    "fleet": lambda folder, scale: fleet.prove(
        folder,
        fleet.Plan(
            jobs=50_000 // scale,
            kills=max(100 // scale, 2),
            standstills=max(10 // scale, 1),
            cuts=max(200 // scale, 4),
            crashes=max(5 // scale, 1),
        ),
    ),
    "fleet-pgbouncer": lambda folder, scale: fleet.prove_through_pgbouncer(
        folder,
        fleet.Plan(
            jobs=10_000 // scale,
            kills=max(20 // scale, 2),
            standstills=max(2 // scale, 1),
            cuts=max(40 // scale, 4),
            crashes=max(6 // scale, 2),
            stops_too=True,
            longest_down=2.0,
        ),
    ),
    "restarts": lambda folder, scale: fleet.prove_restarts(folder, restarts(scale)),
    "failover": lambda folder, scale: failover.prove(
        folder, failover.Plan(failovers=max(20 // scale, 3), unwaited=max(6 // scale, 2))
    ),
    "redis-fleet": lambda folder, scale: fleet.prove_on_redis(
        folder,
        fleet.Plan(
            jobs=50_000 // scale,
            kills=max(100 // scale, 2),
            standstills=max(10 // scale, 1),
            cuts=max(200 // scale, 4),
            crashes=max(20 // scale, 1),
            longest_down=2.0,
        ),
    ),
    "redis-cluster": lambda folder, scale: fleet.prove_on_a_cluster(folder, on_a_cluster(scale)),
    "redis-spread": lambda folder, scale: fleet.prove_on_a_cluster(folder, on_a_cluster(scale), spread=True),
    "redis-restarts": lambda folder, scale: fleet.prove_restarts_on_redis(folder, restarts(scale)),
    "redis-terminations": lambda folder, scale: terminations.prove_on_redis(
        folder, terminations.Plan(calm=15 / scale, seconds=60 / scale)
    ),
    "redis-everysec": lambda folder, scale: redis_everysec.prove(
        folder, redis_everysec.Plan(jobs=10_000 // scale, stops=max(20 // scale, 2))
    ),
    "terminations": lambda folder, scale: terminations.prove(
        folder, terminations.Plan(calm=15 / scale, seconds=300 / scale)
    ),
    "late-commit": lambda folder, scale: late_commit.prove(
        folder, late_commit.Plan(times=50 // scale, worked_before=max(20_000 // scale, 6_000))
    ),
    "lost-replies": lambda folder, scale: lost_replies.prove(folder, lost_replies.Plan(replies=1_000 // scale)),
    "redis-failover": lambda folder, scale: sentinel_failover.prove(
        folder, sentinel_failover.Plan(waited=max(10 // scale, 2), unwaited=max(10 // scale, 2))
    ),
    "redis-lost-replies": lambda folder, scale: lost_replies.prove_on_redis(
        folder, lost_replies.Plan(replies=1_000 // scale)
    ),
    "schemathesis": lambda folder, scale: http_fuzz.prove(folder, http_fuzz.Plan(cases=5_000 // scale)),
    "http-fleet": lambda folder, scale: http_fleet.prove(
        folder,
        http_fleet.Plan(
            jobs=20_000 // scale,
            workers=max(10 // scale, 2),
            crashes=max(20 // scale, 2),
            cuts=max(20 // scale, 2),
        ),
    ),
    "http-lost-replies": lambda folder, scale: lost_replies.prove_over_http(
        folder, lost_replies.Plan(replies=1_000 // scale)
    ),
    "slatedb-kills": lambda folder, scale: slatedb_kills.prove(
        folder, slatedb_kills.Plan(jobs=10_000 // scale, kills=max(50 // scale, 2))
    ),
    "slatedb-kills-s3": lambda folder, scale: slatedb_kills.prove(
        folder,
        slatedb_kills.Plan(jobs=10_000 // scale, kills=max(50 // scale, 2), store="s3", store_kills=max(5 // scale, 1)),
    ),
    "slatedb-kills-far": lambda folder, scale: slatedb_kills.prove(
        folder,
        slatedb_kills.Plan(jobs=10_000 // scale, kills=max(50 // scale, 2), store="s3", away=0.03, opens_within=10.0),
    ),
    "slatedb-kills-deleting": lambda folder, scale: slatedb_kills.prove(
        folder, slatedb_kills.Plan(jobs=10_000 // scale, kills=max(50 // scale, 2), keep=False)
    ),
    "slatedb-storage": lambda folder, scale: slatedb_storage.prove(folder, slatedb_storage.Plan(jobs=20_000 // scale)),
    "slatedb-storage-s3": lambda folder, scale: slatedb_storage.prove(
        folder, replace(slatedb_storage.IN_A_BUCKET, jobs=20_000 // scale)
    ),
    "slatedb-takeover": lambda folder, scale: slatedb_takeover.prove(
        folder, slatedb_takeover.Plan(jobs=5_000 // scale, takeovers=max(50 // scale, 2))
    ),
    "slatedb-takeover-s3": lambda folder, scale: slatedb_takeover.prove(
        folder, slatedb_takeover.Plan(jobs=5_000 // scale, takeovers=max(50 // scale, 2), store="s3")
    ),
    "slatedb-s3-faults": lambda folder, scale: slatedb_faults.prove(
        folder,
        slatedb_faults.Plan(
            calls=10_000 // scale, stores=max(6 // scale, 1), outages=max(6 // scale, 2), bursts=max(20 // scale, 2)
        ),
    ),
    "slatedb-s3-lines": lambda folder, scale: slatedb_lines.prove(
        folder, slatedb_lines.Plan(jobs=max(40 // scale, slatedb_lines.BATCH))
    ),
    "transactions": lambda folder, scale: transactions.prove(
        folder, transactions.Plan(commits=200 // scale, rollbacks=200 // scale)
    ),
    "moves": lambda folder, scale: moves.prove(folder, moves.Plan(jobs=100_000 // scale, kills=max(10 // scale, 4))),
    "memory": lambda folder, scale: memory.prove(folder, memory.Plan(jobs=100_000 // scale)),
}
TIMED: dict[str, Callable[[Path, float], Report]] = {
    "checkpoints": lambda folder, seconds: checkpoints.prove(folder, checkpoints.Plan(seconds=seconds)),
    "terminations": lambda folder, seconds: terminations.prove(folder, terminations.Plan(seconds=seconds)),
    "redis-terminations": lambda folder, seconds: terminations.prove_on_redis(
        folder, terminations.Plan(seconds=seconds)
    ),
}
"""Parts that last as long as they are told to."""
EXIT_CODES = {Verdict.HOLDS: 0, Verdict.BROKEN: 1, Verdict.VOID: 2}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m proofs", description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--report", type=Path, help="also write the table to this file, as markdown")
    parser.add_argument("--smaller", type=int, default=1, metavar="N", help="a try with the numbers divided by N")
    parser.add_argument("--seconds", type=float, help=f"how long, for {', '.join(TIMED)}")
    parser.add_argument("--examples", type=int, help="machine alone: how many on each store")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the store is put, on a disk that you choose; it stays there when the promise did not hold",
    )
    chosen = parser.parse_args(arguments)
    if chosen.seconds is not None and chosen.part not in TIMED:
        parser.error(f"--seconds is for {', '.join(TIMED)}")
    if chosen.examples is not None and chosen.part != "machine":
        parser.error("--examples is for machine")
    report = _run(chosen)
    sys.stdout.write(report.text())
    if chosen.report is not None:
        chosen.report.parent.mkdir(parents=True, exist_ok=True)
        chosen.report.write_text(report.markdown())
        if chosen.report.parent.resolve() == index.REPORTS:
            index.write_index(chosen.report.parent)
    return EXIT_CODES[report.verdict]


def _run(chosen: argparse.Namespace) -> Report:
    """Run a part in a folder of its own, which stays for whoever asks why the promise did not hold."""
    folder = Path(mkdtemp(prefix="windlass-proof-", dir=chosen.folder)).resolve()
    left = Remains(folder)
    try:
        with left.of_servers():
            report = _report(chosen, folder)
            left.held = report.verdict is Verdict.HOLDS
    finally:
        if left.held:
            shutil.rmtree(folder)
        else:
            sys.stderr.write(f"{chosen.part}: what there is to look at is left in {left}\n")
    return report


def _report(chosen: argparse.Namespace, folder: Path) -> Report:
    if chosen.seconds is not None:
        return TIMED[chosen.part](folder, chosen.seconds)
    if chosen.examples is not None:
        return machine.prove(folder, machine.Plan(examples=chosen.examples))
    return PARTS[chosen.part](folder, chosen.smaller)
