"""The columns of a job, compared with the fields of the job and with what reads and writes them by position."""

from typing import Any

from tests.job_samples import FULL
from tests.stores.columns import columns_read
from windlass.core.duration import to_micros
from windlass.core.job import STORED_FIELDS, TIME_FIELDS, WAITING_FIELDS, PreparedJob
from windlass.kit.records import headers_text
from windlass.stores.sqlite.rows import BARE_COLUMNS, ENQUEUED_COLUMNS, ClaimedRow, JobRow, claim_of, sound_job

PROGRESS = '[1.5,10.0,"sent"]'


def test_each_field_of_a_job_is_a_column() -> None:
    missing = [f"{field.name}: {field.type}" for field in STORED_FIELDS if field.name not in JobRow._fields]

    assert not missing, f"add to JobRow in rows.py: {', '.join(missing)}"
    # in their order, and what a job does not show behind them
    assert JobRow._fields[: len(STORED_FIELDS)] == tuple(field.name for field in STORED_FIELDS)


def test_each_field_that_an_enqueue_gives_is_written() -> None:
    # a key is written as its name, its hold and the end of that; the values of the caller lie elsewhere
    given = set(PreparedJob._fields) - {"unique", "kv", "delay"} | {"unique_key", "hold", "hold_until"}
    missing = given - set(ENQUEUED_COLUMNS)

    assert not missing, f"add to ENQUEUED_COLUMNS in rows.py: {', '.join(sorted(missing))}"
    assert ENQUEUED_COLUMNS[: len(BARE_COLUMNS)] == BARE_COLUMNS


def test_a_claim_is_read_in_the_order_of_its_columns() -> None:
    named_otherwise = {"id": "job_id", "created_at": "created", "hold": "_"}
    columns = [named_otherwise.get(column, column) for column in ClaimedRow._fields]

    assert columns_read(claim_of) == columns, f"write in claim_of: {', '.join(columns)}, = row"


def test_a_job_is_read_in_the_order_of_its_columns() -> None:
    shown = {field.name for field in STORED_FIELDS}
    columns = ["job_id" if column == "id" else column if column in shown else "_" for column in JobRow._fields]

    assert columns_read(sound_job) == columns, f"write in sound_job: {', '.join(columns)}, = row"


def test_a_claim_has_each_field_of_a_waiting_job() -> None:
    # the claim itself says where the job stands, and progress is of the claim before
    fields = [field.name for field in WAITING_FIELDS if field.name not in {"state", "progress"}]
    missing = [name for name in fields if name not in ClaimedRow._fields]

    assert not missing, f"add to ClaimedRow in rows.py: {', '.join(missing)}"


def test_each_column_becomes_the_field_of_its_name() -> None:
    stored = FULL._replace(history=(), log=(), damage=None)
    columns: dict[str, Any] = stored._asdict() | {name: to_micros(getattr(stored, name)) for name in TIME_FIELDS}
    columns |= {"state": str(stored.state), "headers": headers_text(stored.headers), "progress": PROGRESS}

    row = JobRow._make(columns.get(name) for name in JobRow._fields)
    assert sound_job(row) == stored
