"""The columns of a job in the statements, compared with the fields of the job and with what reads them by position."""

import ast
import inspect
from typing import Final

from windlass.core.job import Job
from windlass.stores.postgres.rows import ClaimedRow, JobRow, claim_of
from windlass.stores.postgres.statements import sql

STORED_APART: Final = {"history", "log", "damage"}
"""Fields of a job that are no column."""


def test_each_field_of_a_job_is_a_column() -> None:
    fields = [field for field in Job._fields if field not in STORED_APART]
    missing = [field for field in fields if field not in JobRow._fields]

    assert not missing, f"add to JobRow in rows.py: {', '.join(missing)}"
    assert [column for column in JobRow._fields if column in fields] == fields


def test_ids_are_read_as_text() -> None:
    assert "seq, id::text, queue" in sql("jobs")
    assert "claimed.parent_id::text, claimed.schedule_id" in sql("claim")
    assert "parent_id, schedule_id" in sql("claim").partition("returning")[2]


def test_a_claim_is_read_in_the_order_of_its_columns() -> None:
    [read] = [
        [name.id for name in each.targets[0].elts if isinstance(name, ast.Name)]
        for each in ast.walk(ast.parse(inspect.getsource(claim_of)))
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Tuple)
    ]
    named_otherwise = {"id": "job_id", "created_at": "created", "hold": "_"}
    columns = [named_otherwise.get(column, column) for column in ClaimedRow._fields]

    assert read == columns, f"write in claim_of: {', '.join(columns)}, = row"
