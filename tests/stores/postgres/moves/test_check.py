"""What `doctor` says of a Postgres: nothing of a healthy one, and of any other what is wrong and what to do."""

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql as composed

from tests.postgres.cluster import as_owner, cluster
from tests.stores.postgres.moves.moving import Mover
from tests.stores.postgres.shell import options_of
from windlass.core.looks import Finding
from windlass.stores.postgres import check as checking
from windlass.stores.postgres.check import MANY_CHANGES, MANY_DEAD_ROWS, MANY_TRANSACTIONS, MUCH_LOG, Server, check
from windlass.stores.postgres.migrate import SCHEMA
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.statements import statement
from windlass.stores.postgres.work import Many, Rows, Statement, Work

HEALTHY: Final = Server(
    release=16,
    version="16.3",
    fsync=True,
    synchronous_commit="on",
    has_standbys=False,
    autovacuum=True,
    is_standby=False,
    connections=10,
    most_connections=97,
    notifications=0.0,
)
SINCE: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANSWERS: Final[Mapping[str, Rows]] = {
    "check_server": [HEALTHY],
    "schema_version": [("schema", str(SCHEMA))],
    "moved": [],
    "check_snapshots": [],
    "check_prepared": [],
    "check_slots": [("standby", True, 10, 5 * MUCH_LOG)],
    "check_vacuum": [(10, MANY_DEAD_ROWS - 1, SINCE)],
    "check_counts": [(7,)],
    "check_settings": [],
}
OPTIONS: Final = Options("postgres://db/jobs")


def found(
    answers: Mapping[str, Rows] | None = None,
    options: Options = OPTIONS,
    *,
    pooled: bool = False,
    hears: bool | None = True,
) -> dict[str, Finding]:
    """Return what is said of a server that gives these answers."""
    findings = answered(check(options, pooled=pooled, hears=hears), {**ANSWERS, **(answers or {})})
    assert len({finding.name for finding in findings}) == len(findings)
    return {finding.name: finding for finding in findings}


def answered(work: Work[list[Finding]], answers: Mapping[str, Rows]) -> list[Finding]:
    wanted: Statement | Many = next(work)
    try:
        while True:
            wanted = work.send(answers[wanted.name])
    except StopIteration as end:
        findings: list[Finding] = end.value
        return findings


def snapshot(state: str | None, since: datetime | None, behind: int = 5) -> list[tuple[object, ...]]:
    return [(4711, "report", "psql", state, "client backend", since, timedelta(hours=3), behind)]


def hidden(behind: int = 5) -> Rows:
    """Return what a role is shown that may not see the sessions of others."""
    return [(4711, "report", "psql", None, None, None, None, behind)]


def of_a_standby(behind: int) -> Rows:
    """Return what is shown of the process that serves a standby, which reports what it still reads."""
    return [(4712, "replica", "standby1", "active", "walsender", None, None, behind)]


def test_nothing_is_wrong_with_a_healthy_server() -> None:
    findings = found()

    assert [finding for finding in findings.values() if finding.level != "ok" or finding.advice] == []
    assert findings["server"].message == "Postgres 16.3"
    assert findings["schema"].message == f"version {SCHEMA} of {SCHEMA}"


@pytest.mark.parametrize(
    "name, server, said, advice",
    [
        ("server", HEALTHY._replace(release=14, version="14.9"), "14.9: Windlass is tested with 15 to 18", "upgrade"),
        ("server", HEALTHY._replace(release=19, version="19.1"), "19.1: Windlass is tested with 15 to 18", "newer"),
        ("role", HEALTHY._replace(is_standby=True), "a standby", "the primary"),
        ("durability", HEALTHY._replace(fsync=False), "fsync=off", "fsync=on"),
        ("durability", HEALTHY._replace(synchronous_commit="off"), "before a crash may be lost", "= on"),
        (
            "durability",
            HEALTHY._replace(synchronous_commit="local", has_standbys=True),
            "before a failover may be lost",
            "= on",
        ),
        ("vacuum", HEALTHY._replace(autovacuum=False), "autovacuum=off", "autovacuum=on"),
        ("connections", HEALTHY._replace(connections=88), "88 connections of at most 97", "max_connections"),
        ("notifications", HEALTHY._replace(notifications=0.2), "full to 20%", "idle in transaction"),
    ],
)
def test_a_server_with_a_bad_setting_is_told_of(name: str, server: Server, said: str, advice: str) -> None:
    finding = found({"check_server": [server]})[name]

    assert finding.level == ("error" if name == "role" else "warning")
    assert said in finding.message
    assert advice in (finding.advice or "")


@pytest.mark.parametrize(
    "name, statement, rows, said, advice",
    [
        (
            "snapshots",
            "check_snapshots",
            snapshot("idle in transaction", SINCE),
            "process 4711 (psql, role report) holds a snapshot since 2026-01-01 12:00:00 UTC, 3 h ago, and is idle in",
            "select pg_terminate_backend(4711)",
        ),
        ("snapshots", "check_snapshots", hidden(MANY_TRANSACTIONS), "100,000", "grant pg_read_all_stats"),
        (
            "snapshots",
            "check_snapshots",
            of_a_standby(MANY_TRANSACTIONS),
            "a standby, by process 4712",
            "on the standby",
        ),
        ("prepared", "check_prepared", [("x'1", "app", SINCE)], "since 2026-01-01 12:00:00 UTC", "rollback prepared"),
        (
            "slots",
            "check_slots",
            [("one", True, 0, 0), ("two", False, 0, MUCH_LOG)],
            "'two' has no reader: it keeps 1.0 GiB",
            "pg_drop_replication_slot('two')",
        ),
        ("slots", "check_slots", [("slow", True, MANY_TRANSACTIONS, 0)], "does not keep up", "catch up"),
        ("vacuum", "check_vacuum", [(10, MANY_DEAD_ROWS, None)], "100,000 rows that are gone", "vacuum windlass_job"),
        ("counts", "check_counts", [(MANY_CHANGES,)], "100,000 changes or more", "start a server"),
        ("moved", "moved", [('["redis://other","m1"]',)], "its jobs go to redis://other", "connect to redis://other"),
    ],
)
def test_what_keeps_rows_or_piles_up_is_told_of(name: str, statement: str, rows: Rows, said: str, advice: str) -> None:
    finding = found({statement: rows})[name]

    assert finding.level == "warning"
    assert said in finding.message
    assert advice in (finding.advice or "")


def test_a_snapshot_that_may_be_short_is_no_warning_but_what_hides_it_is_said() -> None:
    finding = found({"check_snapshots": hidden()})["snapshots"]

    assert finding.level == "ok"
    assert "pg_read_all_stats" in (finding.advice or "")


def test_how_others_are_told_is_said() -> None:
    heard = found()["notifications"]
    lost = found(hears=False)["notifications"]
    off = found(options=Options("postgres://db/jobs", notify=False))["notifications"]
    pooled = found(pooled=True)["notifications"]

    assert [each.level for each in (heard, lost, off, pooled)] == ["ok", "warning", "ok", "ok"]
    assert "milliseconds" in heard.message
    assert all("polling" in each.message for each in (lost, off, pooled))
    assert "Postgres itself" in (pooled.advice or "")


async def test_every_question_is_one_that_postgres_answers(mover: Mover) -> None:
    options = options_of(mover.url)

    findings = await mover.look(lambda _: check(options, pooled=False))

    assert [finding for finding in findings if finding.level == "error"] == []
    assert {finding.name for finding in findings} == set(found())


@pytest.fixture
async def superuser(mover: Mover) -> AsyncIterator[Mover]:
    """Who sees what every session does."""
    superuser = Mover(as_owner(mover.url))
    yield superuser
    await superuser.connections.close()


async def test_the_session_that_holds_the_oldest_snapshot_is_named(
    superuser: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "LONG", timedelta(0))
    options = options_of(superuser.url)

    with superuser.somebody() as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("set application_name = 'the report'")
        connection.execute("select")
        findings = await superuser.look(lambda _: check(options, pooled=False))
        pid = connection.info.backend_pid

    [finding] = [finding for finding in findings if finding.name == "snapshots"]
    assert finding.level == "warning"
    assert f"process {pid} (the report, role postgres)" in finding.message
    assert "idle in transaction" in finding.message


@pytest.fixture
def little_role() -> Iterator[str]:
    name = f"little_{uuid4().hex[:8]}"
    cluster().run(composed.SQL("create role {}").format(composed.Identifier(name)))
    yield name
    cluster().run(composed.SQL("drop role {}").format(composed.Identifier(name)))


async def test_a_role_that_may_not_see_others_is_told_of_their_snapshots_and_what_would_help(
    mover: Mover, little_role: str
) -> None:
    with mover.somebody() as holder, mover.somebody() as looker:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select")
        looker.execute(composed.SQL("set role {}").format(composed.Identifier(little_role)))
        with psycopg.RawCursor[tuple[Any, ...]](looker) as cursor:
            rows = cursor.execute(statement("check_snapshots").text.encode(), [timedelta(hours=1)]).fetchall()
        pid = holder.info.backend_pid

    assert [row[5] for row in rows] == [None]
    finding = found({"check_snapshots": rows})["snapshots"]
    assert f"process {pid} (hidden, role postgres)" in finding.message
    assert "pg_read_all_stats" in (finding.advice or "")


async def test_connections_are_counted_also_those_that_a_role_may_not_see(mover: Mover, little_role: str) -> None:
    with mover.somebody(), mover.somebody() as looker:
        looker.execute(composed.SQL("set role {}").format(composed.Identifier(little_role)))
        [row] = looker.execute(statement("check_server").text.encode()).fetchall()

    assert Server(*row).connections >= 2
