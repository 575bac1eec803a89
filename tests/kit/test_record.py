"""A job as a record of Python, compared with the fields of a job."""

from tests.job_samples import FULL
from windlass.core.job import STORED_FIELDS, WAITING_FIELDS
from windlass.kit.moves.record import Record, record_of

STORED = FULL._replace(history=(), log=(), damage=None)


def test_each_field_of_a_job_is_in_its_record() -> None:
    missing = [f"{field.name}: {field.type}" for field in STORED_FIELDS if field.name not in Record.__struct_fields__]

    assert not missing, f"add to Record in kit/moves/record.py: {', '.join(missing)}"


def test_a_record_is_read_as_the_job_with_the_same_fields() -> None:
    record = record_of(STORED, None)
    for field in STORED_FIELDS:
        setattr(record, field.name, getattr(STORED, field.name))

    assert record.job() == STORED


def test_a_job_of_another_store_keeps_what_a_waiting_job_has() -> None:
    moved = record_of(STORED, None).job()

    # its number is one of this store
    kept = {field.name for field in WAITING_FIELDS} - {"seq"}
    assert {name: getattr(moved, name) for name in kept} == {name: getattr(STORED, name) for name in kept}
