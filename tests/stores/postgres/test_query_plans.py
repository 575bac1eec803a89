"""The statements find their rows by an index, however many jobs of other kinds and states there are.

Each is explained as the store runs it: with its planner settings, with values that are known and with values that are
not, on tables that are empty and on full ones whose statistics are as bad as can be.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from tests.postgres.cluster import dsn_of, schema_of
from tests.postgres.ready import ready_schema
from windlass.stores.postgres.statements import statement

SETTINGS: Final = "-c enable_seqscan=off -c enable_bitmapscan=off -c jit=off -c lock_timeout=10s"
VALUES: Final = {
    "bigint": "5",
    "bigint[]": "array[5, 6, 7]::bigint[]",
    "boolean": "false",
    "boolean[]": "array[false]",
    "bytea": "'a'::bytea",
    "bytea[]": "array['a'::bytea]",
    "integer": "100",
    "integer[]": "array[100, 200]",
    "interval": "interval '1 minute'",
    "interval[]": "array[interval '1 minute', null]",
    "text": "'default'",
    "text[]": "array['default', 'other']",
    # later ones for later parameters: between two that are the same there is nothing, and nothing to plan
    "timestamp with time zone": "clock_timestamp() + interval '{place} s'",
    "timestamp with time zone[]": "array[clock_timestamp(), clock_timestamp()]",
    "jsonb": "'{}'::jsonb",
    "uuid": "gen_random_uuid()",
    "uuid[]": "array[gen_random_uuid(), gen_random_uuid()]",
}
FILL: Final = """
insert into windlass_job (
    id, queue, kind, payload, codec, priority, state, max_attempts, created_at, run_at, lease_expires_at, finished_at,
    token
)
select
    gen_random_uuid(), (array['default', 'other', 'third'])[n % 3 + 1], 'kind' || n % 5, '', 'raw', n % 2,
    (array['pending', 'scheduled', 'running', 'succeeded', 'dead', 'cancelled'])[n % 6 + 1], 3, now(),
    now() + n * interval '1 s', case when n % 6 = 2 then now() + n * interval '1 s' end,
    case when n % 6 > 2 then now() - n * interval '1 s' end, case when n % 6 = 2 then gen_random_uuid() end
from generate_series(1, 6000) as n;
insert into windlass_schedule
select
    'schedule' || n, '* * * * *', 'UTC', 'default', null, 'raw', null, null, 0, 3, 'one', 'allow', n % 2 = 0, false,
    now() + n * interval '1 s', null, null, n, ''
from generate_series(1, 1000) as n;
insert into windlass_receipt select n::text, now() + n * interval '1 s' from generate_series(1, 1000) as n;
insert into windlass_hold
select n::text, gen_random_uuid(), now() + n * interval '1 s', '' from generate_series(1, 1000) as n;
insert into windlass_timing
select now() + n * interval '1 min', 'default', 'kind', 'ran', 1, n from generate_series(1, 1000) as n;
insert into windlass_kv select n::text::bytea, '' from generate_series(1, 1000) as n;
"""
BY_ID: Final = r"windlass_job_id_key .*\n.*Index Cond: \(id = ANY"
BY_NAME: Final = r"windlass_hold_pkey .*\n.*Index Cond: \(name = ANY"
BY_SEQ: Final = r"windlass_job_pkey .*\n.*Index Cond: \(seq = ANY"
BY_SEQ_OR_FIELD: Final = r"windlass_(?:job_pkey|of_\w+) .*\n.*Index Cond: .*\(seq {}"
"""Where a field is given whose index is in the same order, that one is taken."""
AHEAD: Final = (
    r"Limit\n *->  Index Only Scan using windlass_ready .*\n"
    r".*\(queue = .*ROW\(priority, run_at\) >= .*priority < .*ROW\(priority, run_at, seq\) < "
)
DEATHS: Final = (
    r"Limit\n *->  Index Only Scan Backward using windlass_finished .*\n"
    r".*\(queue = .*state = .*ROW\(finished_at, seq\) < "
)
FOUND_BY: Final = [
    ("claim", r"windlass_ready .*\n.*\(queue = .*ROW\(priority, run_at\) >= .*priority < "),
    ("claim", r"windlass_due .*\n.*\(queue = .*run_at <= .*run_at >= "),
    ("claim", BY_SEQ),
    ("claim", r"windlass_queue_pkey .*\n.*Index Cond: \(queue = "),
    ("claim", BY_NAME),
    (
        "claim_chosen",
        r"Limit\n *->  Index.* windlass_ready_kind .*\n.*\(queue = .*kind = .*ROW\(priority, run_at\) >= .*priority < ",
    ),
    ("claim_chosen", r"windlass_queue_pkey .*\n.*Index Cond: \(queue = "),
    ("claim_chosen", r"windlass_due .*\n.*\(queue = .*run_at <= .*run_at >= "),
    ("claim_chosen", BY_SEQ),
    ("claim_chosen", BY_NAME),
    ("claimed_before", BY_SEQ),
    ("ack", BY_ID),
    ("ack", BY_NAME),
    ("ack_and_forget", BY_ID),
    ("ack_and_forget", BY_NAME),
    ("ack_and_forget", r"windlass_delivery_pkey .*\n.*Index Cond: \(seq = ANY"),
    ("ack_and_forget", r"windlass_log_pkey .*\n.*Index Cond: \(seq = ANY"),
    ("enqueue", r"Conflict Arbiter Indexes: windlass_job_id_key"),
    ("enqueue_alike", r"Conflict Arbiter Indexes: windlass_job_id_key"),
    ("enqueue_one", r"windlass_job_id_key .*\n.*Index Cond: \(id = "),
    ("known_ids", BY_ID),
    ("holders", BY_NAME),
    ("take_holds", r"Conflict Arbiter Indexes: windlass_hold_pkey"),
    ("drop_holds", BY_NAME),
    ("free_holds", BY_NAME),
    ("payloads", BY_SEQ),
    ("forget", BY_SEQ),
    ("finish", r"windlass_job_pkey .*\n.*Index Cond: \(seq = "),
    ("wait_again", r"windlass_job_pkey .*\n.*Index Cond: \(seq = "),
    ("replace", r"windlass_job_pkey .*\n.*Index Cond: \(seq = "),
    ("receipt", r"windlass_receipt_pkey .*\n.*Index Cond: \(request_id = "),
    ("hold_marks", r"windlass_queue_pkey .*\n.*Index Cond: \(queue = ANY"),
    ("first_ready", r"windlass_ready .*\n.*\(queue = .*priority = .*run_at >= .*run_at < "),
    ("first_due", r"windlass_due .*\n.*\(queue = .*run_at >= .*run_at < "),
    ("first_leased", r"windlass_leased .*\n.*Index Cond: .*lease_expires_at >= .*lease_expires_at < "),
    ("standing", BY_ID),
    ("glance", BY_ID),
    ("get", BY_ID),
    ("get", r"windlass_delivery_pkey .*\n.*Index Cond: \(seq = "),
    ("get", r"windlass_log_pkey .*\n.*Index Cond: \(seq = "),
    ("renew", BY_ID),
    ("renew", BY_SEQ),
    ("renew_locked", BY_ID),
    ("renew_locked", BY_SEQ),
    ("fence", BY_ID),
    ("noting", BY_ID),
    ("standing_free", BY_ID),
    ("note", r"windlass_job_pkey .*\n.*Index Cond: \(seq = "),
    ("forget_old_log", r"windlass_log_pkey .*\n.*\(seq = .*\(line > .*\(line <= "),
    ("flag", BY_SEQ),
    ("cancel", BY_SEQ),
    ("retry", BY_SEQ),
    ("reschedule", BY_SEQ),
    ("due_queues", r"windlass_due .*\n.*\(queue = .*run_at <= .*run_at >= "),
    ("promote", r"windlass_due .*\n.*\(queue = .*run_at <= .*run_at >= "),
    ("promote", BY_SEQ),
    ("due_in", r"windlass_due .*\n.*\(queue = .*run_at >= "),
    ("expired", r"windlass_leased .*\n.*lease_expires_at <= .*lease_expires_at >= "),
    ("expired_seqs", r"windlass_leased .*\n.*lease_expires_at <= .*lease_expires_at >= "),
    ("expired_one", r"windlass_job_pkey .*\n.*Index Cond: \(seq = "),
    ("stranded", r"windlass_leased .*\n.*lease_expires_at <= .*lease_expires_at >= "),
    ("prunable", r"windlass_finished .*\n.*\(queue = .*state = .*finished_at <= .*ROW\(finished_at, seq\) > "),
    ("forget_old_receipts", r"windlass_receipt_age .*\n.*Index Cond: .*at <= .*at >= "),
    ("forget_old_receipts", r"windlass_receipt_pkey .*\n.*Index Cond: \(request_id = ANY"),
    ("drop_expired_holds", r"windlass_hold_expiry .*\n.*Index Cond: .*expires_at <= .*expires_at >= "),
    ("forget_old_minutes", r"windlass_count_pkey .*\n.*Index Cond: \(minute < "),
    ("dead_jobs", r"windlass_dead .*\n.*ROW\(queue, seq\) > .*queue <= "),
    ("jobs", BY_SEQ_OR_FIELD.format("> ")),
    ("kinds", r"windlass_ready_kind .*\n.*\(queue = .*kind > .*edge.*kind < .*next_edge"),
    ("kinds", r"windlass_ready_kind .*\n.*\(queue = .*kind > .*edge\)\)"),
    ("stats", r"windlass_count_pkey .*\n.*\(minute = 'infinity'"),
    ("stats", r"windlass_ready .*\n.*\(queue = .*priority = .*run_at >= "),
    ("minutes", r"windlass_count_pkey .*\n.*minute >= .*minute < "),
    ("fold", r"windlass_delta_pkey .*\n.*Index Cond: \(id > "),
    ("fold", r"windlass_delta_pkey .*\n.*Index Cond: \(id = ANY"),
    ("queue_settings", r"windlass_queue_pkey .*\n.*Index Cond: \(queue = ANY"),
    ("kv_get", r"windlass_kv_pkey .*\n.*Index Cond: \(key = ANY"),
    ("kv_scan", r"windlass_kv_pkey .*\n.*key >= .*key < "),
    ("kv_replace", r"windlass_kv_pkey .*\n.*Index Cond: \(key = "),
    ("kv_remove", r"windlass_kv_pkey .*\n.*Index Cond: \(key = "),
    ("upcoming_schedules", "using windlass_upcoming"),
    ("upcoming_schedules", r"windlass_schedule_pkey .*\n.*Index Cond: \(id = ANY"),
    ("upcoming_schedules", r"windlass_schedule_pkey .*\n.*Index Cond: \(id = upcoming.id"),
    ("schedules_of", r"windlass_schedule_pkey .*\n.*Index Cond: \(id = ANY"),
    ("schedule_standing", r"windlass_schedule_pkey .*\n.*Index Cond: \(id = "),
    ("move_schedule", r"windlass_schedule_pkey .*\n.*Index Cond: \(id = "),
    ("update_schedule", r"windlass_schedule_pkey .*\n.*Index Cond: \(id = "),
    ("audit", "Backward using windlass_audit_pkey"),
    ("newest", r"Backward using windlass_job_pkey .*\n.*Index Cond: \(seq < "),
    ("newest_end", r"Backward using windlass_job_pkey .*\n.*Index Cond: \(seq < "),
    ("newest_dead", r"Backward using windlass_dead .*\n.*ROW\(queue, seq\) < .*queue >= "),
    ("newest_dead", BY_SEQ),
    ("deaths", DEATHS),
    ("deaths", BY_SEQ),
    ("deaths_without_time", r"Backward using windlass_dead .*\n.*ROW\(queue, seq\) < .*queue >= "),
    ("deaths_without_time", BY_SEQ),
    ("newest_counted", r"windlass_ready .*\n.*Index Cond: \(queue = "),
    ("newest_counted", r"windlass_due .*\n.*Index Cond: \(queue = "),
    ("newest_counted", r"windlass_leased "),
    ("newest_counted", r"windlass_finished .*\n.*\(queue = .*state = "),
    ("newest_these", BY_SEQ_OR_FIELD.format("= ANY")),
    ("newest_of_tenant", r"Backward using windlass_of_tenant .*\n.*ROW\(tenant, seq\) < .*tenant >= "),
    ("newest_of_key", r"Backward using windlass_of_key .*\n.*ROW\(unique_key, seq\) < .*unique_key >= "),
    ("newest_of_parent", r"Backward using windlass_of_parent .*\n.*ROW\(parent_id, seq\) < .*parent_id >= "),
    ("newest_of_kind", r"Backward using windlass_of_kind .*\n.*ROW\(kind, seq\) < .*kind >= "),
    ("newest_pending_or_running", r"Index Only Scan using windlass_ready_kind .*\n.*\(queue = .*kind = "),
    ("newest_pending_or_running", r"windlass_leased "),
    ("newest_of_error", r"Backward using windlass_of_error .*\n.*Index Cond: .*split_part.*, seq\) < .*>= "),
    ("records", r"windlass_count_pkey .*\n.*\(minute = 'infinity'"),
    ("place", r"windlass_job_id_key .*\n.*Index Cond: \(id = "),
    ("place", AHEAD),
    ("place", r"windlass_hold_pkey .*\n.*Index Cond: \(name = "),
    ("waiting_near", r"windlass_job_pkey .*\n.*Index Cond: \(seq >= "),
    ("waiting_first", r"Index Only Scan using windlass_ready .*\n.*Index Cond: \(queue = "),
    ("waiting_first", r"Index Only Scan using windlass_due .*\n.*Index Cond: \(queue = "),
    ("waiting_first", BY_SEQ),
    ("pack", BY_SEQ),
    ("pack", r"windlass_hold_pkey .*\n.*Index Cond: \(name = "),
    ("unpack", r"Conflict Arbiter Indexes: windlass_job_id_key"),
    ("without_key", BY_ID),
    ("timed_keys", r"windlass_hold_expiry .*\n.*Index Cond: \(expires_at > "),
    ("let_go_keys", BY_NAME),
    ("enqueue_here", r"Conflict Arbiter Indexes: windlass_job_id_key"),
    ("timings", r"windlass_timing_pkey .*\n.*minute >= .*minute < "),
    ("waiting", r"GroupAggregate\n.*\n *->  Index Only Scan using windlass_ready_kind "),
    ("waiting", r"windlass_ready .*\n.*\(queue = .*priority = .*run_at >= "),
    ("forget_old_timings", r"windlass_timing_pkey .*\n.*Index Cond: \(minute < "),
]
SORTS_A_FEW: Final = {
    "standing", "standing_free", "renew_locked", "fence", "noting", "minutes", "stats", "ended", "upcoming_schedules",
    "enqueue",
    "claim_chosen", "take_holds", "drop_holds", "hold_marks", "kinds", "newest_dead", "newest_counted", "waiting_first",
    "deaths", "deaths_without_time", "pack", "unpack", "let_go_keys", "enqueue_here", "timings", "records", "waiting",
}  # fmt: skip
"""Those that sort: jobs named one by one, given or counted, keys, queues, kinds, minutes, declared schedules are few.
The first parcel of a queue looks at all that waits in it."""


@pytest.fixture(scope="module", params=["empty", "full"])
def connection(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with ready_schema(unused=True) as url:
        options = f"{SETTINGS} -c search_path={schema_of(url)}"
        with psycopg.connect(dsn_of(url), options=options, prepare_threshold=None) as connection:
            if request.param == "full":
                connection.execute(FILL)
                connection.execute("analyze")
            yield connection
            connection.rollback()


def plan(connection: psycopg.Connection[tuple[Any, ...]], name: str, mode: str) -> str:
    """Return how a statement is run, with values of every type it takes."""
    connection.execute(f"set local plan_cache_mode = force_{mode}_plan".encode())
    connection.execute(f"prepare {name} as {statement(name).text}".encode())
    try:
        [(types,)] = connection.execute(
            "select parameter_types::text[] from pg_prepared_statements where name = %s", [name]
        )
        values = ", ".join(VALUES[each].format(place=place) for place, each in enumerate(types))
        explain = f"explain (costs off) execute {name}" + (f"({values})" if values else "")
        return "\n".join(row[0] for row in connection.execute(explain.encode()))
    finally:
        connection.execute(f"deallocate {name}".encode())


@pytest.mark.parametrize("mode", ["generic", "custom"])
@pytest.mark.parametrize("name, found_by", FOUND_BY)
def test_a_statement_goes_by_its_index(
    connection: psycopg.Connection[tuple[Any, ...]], name: str, found_by: str, mode: str
) -> None:
    steps = plan(connection, name, mode)

    assert re.search(found_by, steps), steps


def test_a_claim_of_any_kind_and_one_of_raw_jobs_begin_at_the_marks(
    connection: psycopg.Connection[tuple[Any, ...]],
) -> None:
    # where the values are known, and name kinds, they are not looked for
    steps = plan(connection, "claim_chosen", "generic")

    assert len(re.findall(r"Limit\n *->  Index.* windlass_ready .*\n.*\(queue = .*ROW\(priority, .*", steps)) == 2, (
        steps
    )


@pytest.mark.parametrize("mode", ["generic", "custom"])
@pytest.mark.parametrize("name", sorted({name for name, _ in FOUND_BY}))
def test_a_statement_reads_no_whole_table_of_jobs_and_sorts_nothing(
    connection: psycopg.Connection[tuple[Any, ...]], name: str, mode: str
) -> None:
    steps = plan(connection, name, mode)

    assert not re.search(
        r"Seq Scan on windlass_(job|receipt|hold|log|delivery|kv|schedule|audit|timing|meta)\b", steps
    ), steps
    assert name in SORTS_A_FEW or not re.search(r"\bSort\b", steps), steps
