"""Jobs enqueued and settled in callers' own transactions, through every library: by those that were committed alone."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

import windlass
from proofs.report import Report
from proofs.serving import Place
from proofs.stores import durable_postgres, name_store
from tests.postgres.cluster import Cluster, dsn_of, schema_of
from tests.stores.postgres.ways import WAYS, Settle, way
from windlass import NewJob

PROMISE = "what is enqueued or settled by connection= is so if and only if that transaction commits"
ENDS: Final[Mapping[str, str]] = {"ack": "succeeded", "nack": "scheduled", "dead_letter": "dead"}
VERBS: Final = tuple(ENDS)


@dataclass(frozen=True)
class Plan:
    commits: int = 200
    rollbacks: int = 200
    seed: int = 1


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("transactions", PROMISE)
    with durable_postgres() as cluster:
        name_store(report, Place(cluster.url, folder / "ledger"))
        for kind in WAYS:
            asyncio.run(_enqueue(report, cluster.as_cluster(), kind, plan))
            asyncio.run(_settle(report, cluster.as_cluster(), kind, plan))
    report.needs("every kind of connection", given=len(WAYS) > 0)
    return report


async def _enqueue(report: Report, cluster: Cluster, kind: str, plan: Plan) -> None:
    url, ends = cluster.new_schema(), _ends(plan)
    async with windlass.connect(url) as client:
        _make_table(cluster, url)
        async with way(kind, client, url) as transact:
            for number, commit in enumerate(ends):
                await transact(f"{kind} {number}", commit)
    wanted = sorted(f"{kind} {number}" for number, commit in enumerate(ends) if commit)
    jobs, rows = _found(url)
    report.figure(f"{kind}: commits and rollbacks", f"{ends.count(True)} and {ends.count(False)}")
    report.never(f"{kind}: committed, and the job is not there once", [n for n in wanted if jobs.count(n) != 1])
    report.never(f"{kind}: rolled back, and the job is there", set(jobs) - set(wanted))
    report.needs(f"{kind}: the rows of the committed transactions", given=rows == wanted)


async def _settle(report: Report, cluster: Cluster, kind: str, plan: Plan) -> None:
    url, ends = cluster.new_schema(), _ends(plan)
    names = {f"{VERBS[number % len(VERBS)]} {number}": commit for number, commit in enumerate(ends)}
    async with windlass.connect(url) as client:
        _make_table(cluster, url)
        await client.enqueue_many([NewJob("email", name.encode()) for name in names])
        claims = await client.claim_many("email", limit=len(names), lease=timedelta(hours=1))
        by_name = {claim.job.payload.decode(): claim for claim in claims}
        async with way(kind, client, url, Settle(by_name, _verb_of)) as transact:
            for name, commit in names.items():
                await transact(name, commit)
    states, rows = _states(url), _found(url)[1]
    settled = {name for name, commit in names.items() if commit}
    report.figure(f"{kind}: settlements committed and rolled back", f"{len(settled)} and {len(names) - len(settled)}")
    report.never(
        f"{kind}: committed, and the claim is not settled so",
        [name for name in settled if states[name] != ENDS[_verb_of(name)]],
    )
    report.never(
        f"{kind}: rolled back, and the claim does not hold",
        [name for name in names.keys() - settled if states[name] != "running"],
    )
    report.needs(f"{kind}: the rows of the committed settlements", given=rows == sorted(settled))


def _verb_of(name: str) -> str:
    return name.partition(" ")[0]


def _ends(plan: Plan) -> list[bool]:
    ends = [True] * plan.commits + [False] * plan.rollbacks
    random.Random(plan.seed).shuffle(ends)
    return ends


def _make_table(cluster: Cluster, url: str) -> None:
    cluster.run(sql.SQL("create table {} (name text)").format(sql.Identifier(schema_of(url), "mine")))


def _states(url: str) -> dict[str, str]:
    with psycopg.connect(dsn_of(url)) as connection:
        jobs = sql.Identifier(schema_of(url), "windlass_job")
        rows = connection.execute(sql.SQL("select payload, state from {}").format(jobs)).fetchall()
    return {payload.decode(): state for payload, state in rows}


def _found(url: str) -> tuple[list[str], list[str]]:
    """Return the names of the jobs and of the caller's own rows."""
    schema = schema_of(url)
    with psycopg.connect(dsn_of(url)) as connection:
        jobs = connection.execute(
            sql.SQL("select payload from {}").format(sql.Identifier(schema, "windlass_job"))
        ).fetchall()
        rows = connection.execute(sql.SQL("select name from {}").format(sql.Identifier(schema, "mine"))).fetchall()
    return sorted(payload.decode() for (payload,) in jobs), sorted(name for (name,) in rows)
