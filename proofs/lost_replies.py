"""Replies are lost after the commit, to every call that changes something: each is done once, and rightly answered.

A proxy lets the database do and commit what was asked, swallows the answer and resets the connection. The store asks
again by itself; what it answers in the end must be what the first try did.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psycopg

import windlass
from proofs.lossy import Bench
from proofs.lost_reply_cases import CASES, GONE
from proofs.lost_reply_others import OTHERS
from proofs.postgres_reader import PostgresReader
from proofs.report import Report
from proofs.serving import Place
from proofs.stores import durable_postgres, name_store
from tests.postgres.proxy import Proxy
from windlass import QueueSettings

PROMISE = "a reply that is lost after the commit makes no job twice, settles nothing twice and loses no claim"
ALL = (*CASES, *OTHERS)


@dataclass(frozen=True)
class Plan:
    replies: int = 1_000


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("lost-replies", PROMISE)
    with durable_postgres() as cluster:
        name_store(report, Place(cluster.url, folder / "ledger"))
        asyncio.run(_prove(report, cluster.url, plan))
    return report


async def _prove(report: Report, url: str, plan: Plan) -> None:
    by_case = Counter[str]()
    async with Proxy(url) as proxy:
        queues = {GONE: QueueSettings(keep_succeeded=0)}
        async with windlass.connect(proxy.url, queues=queues) as client:
            with psycopg.connect(url, autocommit=True) as connection:
                bench = Bench(proxy, client, connection)
                while bench.lost < plan.replies:
                    before = bench.lost
                    await _one_round(bench, by_case)
                    if bench.lost == before:
                        break
    report.figure("replies lost after a commit", bench.lost)
    report.figure("of them lost a second time", bench.lost_again)
    for name, count in by_case.items():
        report.figure(f"lost: {name}", count)
    report.never("wrong answers, double jobs, double settlements, lost claims, errors", bench.wrong)
    _check_totals(report, PostgresReader(url), bench)
    report.needs(f"{plan.replies:,} lost replies", given=bench.lost >= plan.replies)
    report.needs("a lost reply in every case", given=len(by_case) == len(ALL) and all(by_case.values()))


async def _one_round(bench: Bench, by_case: Counter[str]) -> None:
    for case in ALL:
        bench.case = case.__name__.replace("_", " ")
        before = bench.lost
        try:
            await case(bench)
        except windlass.WindlassError as error:
            bench.wrong.append(f"{bench.case}: {type(error).__name__}: {error}")
        by_case[bench.case] += bench.lost - before


def _check_totals(report: Report, reader: PostgresReader, bench: Bench) -> None:
    """What was counted as enqueued and succeeded, over the whole life of the store, is what was asked for."""
    [(enqueued, succeeded)] = reader.rows(
        "select sum(enqueued_total)::bigint, sum(succeeded_total)::bigint from ("
        " select enqueued_total, succeeded_total from windlass_count where minute = 'infinity'"
        " union all select enqueued_total, succeeded_total from windlass_delta) as all_counts"
    )
    report.figure("jobs enqueued", bench.enqueued)
    report.never("jobs enqueued and counted otherwise", range(abs(enqueued - bench.enqueued)))
    report.never("successes counted otherwise", range(abs(succeeded - bench.succeeded)))
    report.never("queues whose counts are off", reader.counts_off())
    report.never("complaints about the store's integrity", reader.integrity())
