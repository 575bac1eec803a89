"""The hot statements find their rows by an index, however many jobs of other kinds and states there are."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.sqlite.parameters import some_parameters
from windlass.stores.sqlite.statements import sql

SCAN = re.compile(r"\bSCAN (?!json_each|CONSTANT ROW|\(subquery|priorities|wanted|kinds)")
BY_ID = "INDEX sqlite_autoindex_windlass_job_1 (id=?)"


@pytest.fixture
def connection(client: object, path: Path) -> Iterator[sqlite3.Connection]:
    assert client
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def plan(connection: sqlite3.Connection, name: str) -> list[str]:
    rows = connection.execute(f"explain query plan {sql(name)}", some_parameters(sql(name)))
    return [row[3] for row in rows]


@pytest.mark.parametrize(
    "name, found_by",
    [
        ("claim", "INDEX windlass_ready (queue=?)"),
        ("claim", "INTEGER PRIMARY KEY (rowid=?)"),
        ("claim_these", "INTEGER PRIMARY KEY (rowid=?)"),
        ("ready", "INDEX windlass_ready (queue=?)"),
        ("ready_of_kind", "INDEX windlass_ready_kind (queue=? AND kind=?)"),
        ("ready_kinds", "INDEX windlass_ready_kind (queue=? AND kind=?)"),
        ("kinds", "INDEX windlass_ready_kind (queue=? AND kind>?)"),
        ("settings_of", "PRIMARY KEY (minute=? AND queue=? AND kind=?)"),
        ("settings_of", "PRIMARY KEY (queue=?)"),
        ("promote", "INDEX windlass_due (queue=? AND run_at<?)"),
        ("next_due", "INDEX windlass_due (queue=?)"),
        ("running", BY_ID),
        ("ack", "INTEGER PRIMARY KEY (rowid=?)"),
        ("ack_and_forget", "INTEGER PRIMARY KEY (rowid=?)"),
        ("renew", BY_ID),
        ("note", "INTEGER PRIMARY KEY (rowid=?)"),
        ("standing", BY_ID),
        ("get", BY_ID),
        ("glance", BY_ID),
        ("seqs_of", BY_ID),
        ("expired", "INDEX windlass_leased (lease_expires_at<?)"),
        ("prunable", "INDEX windlass_finished (queue=? AND state=? AND finished_at<?)"),
        ("dead_jobs", "INDEX windlass_dead (queue=? AND"),
        ("jobs", "INTEGER PRIMARY KEY (rowid>?)"),
        ("oldest_waiting", "INDEX windlass_ready (queue=? AND priority=? AND run_at>? AND run_at<?)"),
        ("oldest_waiting", "INDEX windlass_ready (queue=? AND priority>?)"),
        ("stranded", "INDEX windlass_leased (lease_expires_at<?)"),
        ("holder", "PRIMARY KEY (name=?)"),
        ("upcoming_schedules", "INDEX windlass_upcoming (next_run_at>?)"),
        ("upcoming_declared", "INDEX sqlite_autoindex_windlass_schedule_1 (id=?)"),
        ("schedules_of", "INDEX sqlite_autoindex_windlass_schedule_1 (id=?)"),
        ("schedule_standing", "INDEX sqlite_autoindex_windlass_schedule_1 (id=?)"),
        ("move_schedule", "INDEX sqlite_autoindex_windlass_schedule_1 (id=?)"),
        ("remove_schedule", "INDEX sqlite_autoindex_windlass_schedule_1 (id=?)"),
        ("next_revision", "PRIMARY KEY (name=?)"),
        ("whole_store", "PRIMARY KEY (minute=? AND queue=? AND kind=?)"),
        ("place", BY_ID),
        ("ahead", "INDEX windlass_ready (queue=?)"),
        ("newest", "INTEGER PRIMARY KEY (rowid=?)"),
        ("newest_seqs", "INTEGER PRIMARY KEY (rowid<?)"),
        ("newest_dead", "INDEX windlass_dead (queue=? AND seq<?)"),
        ("deaths", "COVERING INDEX windlass_finished (queue=? AND state=? AND finished_at=? AND rowid<?)"),
        ("deaths", "COVERING INDEX windlass_finished (queue=? AND state=? AND finished_at<?)"),
        ("deaths_without_time", "INDEX windlass_dead (queue=? AND seq<?)"),
        ("newest_running", "COVERING INDEX windlass_leased (lease_expires_at>?)"),
        ("newest_pending", "INDEX windlass_ready (queue=?)"),
        ("newest_scheduled", "INDEX windlass_due (queue=?)"),
        ("newest_ended", "COVERING INDEX windlass_finished (queue=? AND state=?"),
        ("newest_of_tenant", "COVERING INDEX windlass_of_tenant (tenant=? AND seq<?)"),
        ("newest_of_kind", "COVERING INDEX windlass_of_kind (kind=? AND seq<?)"),
        ("newest_of_key", "COVERING INDEX windlass_of_key (unique_key=? AND seq<?)"),
        ("newest_of_parent", "COVERING INDEX windlass_of_parent (parent_id=? AND seq<?)"),
        ("newest_of_error", "INDEX windlass_of_error (<expr>=? AND seq<?)"),
        ("oldest_waiting_seqs", "INDEX windlass_ready (queue=?)"),
        ("oldest_waiting_seqs", "INDEX windlass_due (queue=?)"),
        ("still_waiting", "INTEGER PRIMARY KEY (rowid=?)"),
        ("pack", "INTEGER PRIMARY KEY (rowid=?)"),
        ("waiting", BY_ID),
        ("unpacked", "INDEX sqlite_autoindex_windlass_parcel_1 (move=? AND queue=?)"),
        ("timed_holds", "INDEX windlass_hold_expiry (expires_at>?)"),
        ("timings", "PRIMARY KEY (minute>? AND minute<?)"),
        ("oldest_raw", "INDEX windlass_ready (queue=? AND priority=? AND run_at>? AND run_at<?)"),
        ("oldest_raw", "INDEX windlass_ready (queue=? AND priority>?)"),
    ],
)
def test_a_hot_statement_goes_by_its_index(connection: sqlite3.Connection, name: str, found_by: str) -> None:
    assert [step for step in plan(connection, name) if step.startswith("SEARCH") and f" {found_by}" in step]


@pytest.mark.parametrize(
    "name",
    [
        "claim",
        "claim_these",
        "ready",
        "ready_of_kind",
        "ready_kinds",
        "kinds",
        "settings_of",
        "promote",
        "next_due",
        "running",
        "ack",
        "ack_and_forget",
        "renew",
        "expired",
        "prunable",
        "oldest_waiting",
        "wait_again",
        "finish",
        "cancel",
        "forget",
        "deliveries",
        "log",
        "kv_get",
        "receipt",
        "holder",
        "free_hold",
        "paused",
        "upcoming_schedules",
        "schedules_of",
        "schedule_standing",
        "move_schedule",
        "remove_schedule",
        "next_revision",
        "whole_store",
        "place",
        "newest_seqs",
        "newest_dead",
        "deaths",
        "deaths_without_time",
        "newest_of_tenant",
        "newest_of_kind",
        "newest_of_key",
        "newest_of_parent",
        "newest_of_error",
        "waiting",
        "unpacked",
        "timed_holds",
        "timings",
        "oldest_raw",
    ],
)
def test_a_hot_statement_scans_and_sorts_nothing(connection: sqlite3.Connection, name: str) -> None:
    steps = plan(connection, name)

    assert steps
    assert [step for step in steps if SCAN.search(step) or "TEMP B-TREE" in step] == []


def test_what_waits_is_counted_by_its_index_and_no_row_is_read(connection: sqlite3.Connection) -> None:
    program = connection.execute(f"explain {sql('waiting_by_kind')}", {"earliest": 0, "latest": 1}).fetchall()
    opened = {step[2]: step[3] for step in program if step[1] == "OpenRead"}
    read = {opened[step[2]] for step in program if step[1] == "Column" and step[2] in opened}

    [(index,)] = connection.execute("select rootpage from sqlite_schema where name = 'windlass_ready_kind'")
    [step] = plan(connection, "waiting_by_kind")
    assert step.endswith(" INDEX windlass_ready_kind")
    assert read == {index}
