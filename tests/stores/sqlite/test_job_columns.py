"""The columns of a job, compared with the fields of the job and with what reads and writes them by position."""

import ast
import inspect
from typing import Final

from windlass.core.job import Job, PreparedJob
from windlass.stores.sqlite.rows import BARE_COLUMNS, ENQUEUED_COLUMNS, MOVED_COLUMNS, ClaimedRow, JobRow, claim_of

STORED_APART: Final = {"history", "log", "damage"}
"""Fields of a job that are no column."""
NAMED_OTHERWISE: Final = {"id": "job_id", "created_at": "created", "hold": "_"}
"""Columns that `claim_of` calls by another name."""


def test_each_field_of_a_job_is_a_column() -> None:
    fields = [field for field in Job._fields if field not in STORED_APART]
    missing = [field for field in fields if field not in JobRow._fields]

    assert not missing, f"add to JobRow in rows.py: {', '.join(missing)}"
    assert [column for column in JobRow._fields if column in fields] == fields


def test_each_field_that_an_enqueue_gives_is_written() -> None:
    # a key is written as its name, its hold and the end of that; the values of the caller lie elsewhere
    given = set(PreparedJob._fields) - {"unique", "kv", "delay"} | {"unique_key", "hold", "hold_until"}
    missing = given - set(ENQUEUED_COLUMNS)

    assert not missing, f"add to ENQUEUED_COLUMNS in rows.py: {', '.join(sorted(missing))}"
    assert ENQUEUED_COLUMNS[: len(BARE_COLUMNS)] == BARE_COLUMNS


def test_each_field_of_a_waiting_job_moves_with_it() -> None:
    only_later = {"claimed_at", "lease_expires_at", "finished_at", "worker", "result", "result_codec"}
    missing = set(JobRow._fields) - only_later - set(MOVED_COLUMNS)

    assert not missing, f"add to MOVED_COLUMNS in rows.py: {', '.join(sorted(missing))}"


def test_a_claim_is_read_in_the_order_of_its_columns() -> None:
    [read] = [
        [name.id for name in each.targets[0].elts if isinstance(name, ast.Name)]
        for each in ast.walk(ast.parse(inspect.getsource(claim_of)))
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Tuple)
    ]
    columns = [NAMED_OTHERWISE.get(column, column) for column in ClaimedRow._fields]

    assert read == columns, f"write in claim_of: {', '.join(columns)}, = row"
