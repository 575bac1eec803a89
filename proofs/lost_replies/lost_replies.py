"""Replies are lost after the change, to every call that makes one: each is done once, and rightly answered.

A proxy lets the server do for good what was asked, swallows the answer and resets the connection. The store asks again
by itself; what it answers in the end must be what the first try did.
"""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

import windlass
from proofs.http.http_serving import ServingProcess, admitted
from proofs.lost_replies.cases import CASES, GONE, Case
from proofs.lost_replies.lossy import Bench
from proofs.lost_replies.lossy_http import HttpBench
from proofs.lost_replies.lossy_postgres import PostgresBench
from proofs.lost_replies.lossy_redis import RedisBench
from proofs.lost_replies.other_cases import OTHERS
from proofs.lost_replies.transaction_cases import TRANSACTIONS
from proofs.readers.redis import RedisReader, connect
from proofs.readers.sqlite import FleetReader
from proofs.report import Report
from proofs.serving import Place
from proofs.stores import durable_postgres, name_store, redis_database
from tests.http.proxy import Proxy as HttpProxy
from tests.postgres.proxy import Proxy
from tests.redis.proxy import Proxy as RedisProxy
from windlass import QueueSettings

PROMISE = "a reply that is lost after the commit makes no job twice, settles nothing twice and loses no claim"
ON_REDIS = "a reply that is lost after the script was run makes no job twice, settles nothing twice and loses no claim"
OVER_HTTP = (
    "a reply that is lost after the change was made makes no job twice, settles nothing twice and loses no claim"
)
ALL = (*CASES, *OTHERS)
QUEUES = {GONE: QueueSettings(keep_succeeded=0)}


@dataclass(frozen=True)
class Plan:
    replies: int = 1_000


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("lost-replies", PROMISE)
    with durable_postgres() as cluster:
        place = Place(cluster.url, folder / "ledger")
        name_store(report, place)
        bench, by_case = asyncio.run(_lose_on_postgres(cluster.url, plan))
        _check(report, place.fleet_reader, plan, bench, by_case)
    return report


def prove_on_redis(folder: Path, plan: Plan) -> Report:
    report = Report("redis-lost-replies", ON_REDIS)
    with redis_database() as database:
        place = Place(database.url, folder / "ledger")
        name_store(report, place)
        bench, by_case = asyncio.run(_lose_on_redis(database.url, plan))
        _check(report, place.fleet_reader, plan, bench, by_case)
    return report


def prove_over_http(folder: Path, plan: Plan) -> Report:
    report = Report("http-lost-replies", OVER_HTTP)
    # what comes due or runs out is left to those whose replies get lost
    serving = ServingProcess(folder, WINDLASS_SERVICES="off", WINDLASS_SCHEDULES="off")
    with admitted(serving.tokens), serving:
        place = Place(serving.url, folder / "ledger", serving.file)
        name_store(report, place)
        bench, by_case = asyncio.run(_lose_over_http(place, plan))
        _check(report, place.fleet_reader, plan, bench, by_case)
    return report


async def _lose_on_postgres(url: str, plan: Plan) -> tuple[Bench, Counter[str]]:
    async with Proxy(url) as proxy, windlass.connect(proxy.url, queues=QUEUES) as client:
        with psycopg.connect(url, autocommit=True) as connection:
            bench = PostgresBench(proxy, client, connection)
            return bench, await _lose_all(bench, plan)


async def _lose_on_redis(url: str, plan: Plan) -> tuple[Bench, Counter[str]]:
    async with RedisProxy(url) as proxy, windlass.connect(proxy.url, queues=QUEUES) as client:
        with closing(connect(url)) as direct:
            bench = RedisBench(proxy, client, RedisReader(url), direct)
            bench.know_all_scripts()
            return bench, await _lose_all(bench, plan)


async def _lose_over_http(place: Place, plan: Plan) -> tuple[Bench, Counter[str]]:
    async with HttpProxy(place.url) as proxy, windlass.connect(proxy.url, queues=QUEUES) as client:
        with closing(sqlite3.connect(place.database, timeout=30)) as connection:
            bench = HttpBench(proxy, client, connection)
            return bench, await _lose_all(bench, plan)


async def _lose_all(bench: Bench, plan: Plan) -> Counter[str]:
    by_case = Counter[str]()
    while bench.lost < plan.replies:
        before = bench.lost
        await _one_round(bench, by_case)
        if bench.lost == before:
            break
    return by_case


def _check(report: Report, reader: FleetReader, plan: Plan, bench: Bench, by_case: Counter[str]) -> None:
    report.figure("replies lost after a change", bench.lost)
    report.figure("of them lost a second time", bench.lost_again)
    for name, count in by_case.items():
        report.figure(f"lost: {name}", count)
    report.never("wrong answers, double jobs, double settlements, lost claims, errors", bench.wrong)
    _check_totals(report, reader, bench)
    report.needs(f"{plan.replies:,} lost replies", given=bench.lost >= plan.replies)
    report.needs("a lost reply in every case", given=len(by_case) == len(_cases(bench)) and all(by_case.values()))


def _cases(bench: Bench) -> tuple[Case, ...]:
    return (*ALL, *(TRANSACTIONS if bench.store.features.transactional else ()))


async def _one_round(bench: Bench, by_case: Counter[str]) -> None:
    for case in _cases(bench):
        bench.case = case.__name__.replace("_", " ")
        before = bench.lost
        try:
            await case(bench)
        except windlass.WindlassError as error:
            bench.wrong.append(f"{bench.case}: {type(error).__name__}: {error}")
        by_case[bench.case] += bench.lost - before


def _check_totals(report: Report, reader: FleetReader, bench: Bench) -> None:
    """What was counted as enqueued and succeeded, over the whole life of the store, is what was asked for."""
    enqueued, succeeded = reader.totals()
    report.figure("jobs enqueued", bench.enqueued)
    report.never("jobs enqueued and counted otherwise", range(abs(enqueued - bench.enqueued)))
    report.never("successes counted otherwise", range(abs(succeeded - bench.succeeded)))
    report.never("queues whose counts are off", reader.counts_off())
    report.never("complaints about the store's integrity", reader.integrity())
