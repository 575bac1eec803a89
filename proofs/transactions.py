"""Jobs enqueued in callers' own transactions, through every library: those that were committed exist, and no others."""

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

import windlass
from proofs.report import Report
from proofs.serving import Place
from proofs.stores import durable_postgres, name_store
from tests.postgres.cluster import Cluster, dsn_of, schema_of
from tests.stores.postgres.ways import WAYS, way

PROMISE = "a job that is enqueued by connection= exists if and only if that transaction commits"


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
            asyncio.run(_prove(report, cluster.as_cluster(), kind, plan))
    report.needs("every kind of connection", given=len(WAYS) > 0)
    return report


async def _prove(report: Report, cluster: Cluster, kind: str, plan: Plan) -> None:
    url = cluster.new_schema()
    ends = [True] * plan.commits + [False] * plan.rollbacks
    random.Random(plan.seed).shuffle(ends)
    async with windlass.connect(url) as client:
        cluster.run(sql.SQL("create table {} (name text)").format(sql.Identifier(schema_of(url), "mine")))
        async with way(kind, client, url) as transact:
            for number, commit in enumerate(ends):
                await transact(f"{kind} {number}", commit)
    wanted = sorted(f"{kind} {number}" for number, commit in enumerate(ends) if commit)
    jobs, rows = _found(url)
    report.figure(f"{kind}: commits and rollbacks", f"{ends.count(True)} and {ends.count(False)}")
    report.never(f"{kind}: committed, and the job is not there once", [n for n in wanted if jobs.count(n) != 1])
    report.never(f"{kind}: rolled back, and the job is there", set(jobs) - set(wanted))
    report.needs(f"{kind}: the rows of the committed transactions", given=rows == wanted)


def _found(url: str) -> tuple[list[str], list[str]]:
    """Return the names of the jobs and of the caller's own rows."""
    schema = schema_of(url)
    with psycopg.connect(dsn_of(url)) as connection:
        jobs = connection.execute(
            sql.SQL("select payload from {}").format(sql.Identifier(schema, "windlass_job"))
        ).fetchall()
        rows = connection.execute(sql.SQL("select name from {}").format(sql.Identifier(schema, "mine"))).fetchall()
    return sorted(payload.decode() for (payload,) in jobs), sorted(name for (name,) in rows)
