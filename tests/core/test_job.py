"""What `Job` says of its fields."""

from windlass.core.job import (
    FIELDS_WITH_SECRETS,
    JOB_FIELDS,
    NOTHING_APART,
    ORIGIN_FIELDS,
    STORED_FIELDS,
    WAITING_FIELDS,
    Job,
    PreparedJob,
    Written,
)


def test_each_field_says_when_it_is_written_and_what_it_holds() -> None:
    assert tuple(field.name for field in JOB_FIELDS) == Job._fields
    assert {field.written for field in JOB_FIELDS} == set(Written)
    assert all(field.text for field in JOB_FIELDS)


def test_what_is_kept_apart_from_the_record_comes_last() -> None:
    apart = [field.name for field in JOB_FIELDS if field not in STORED_FIELDS]

    assert apart == list(Job._field_defaults)
    assert tuple(Job._field_defaults.values()) == NOTHING_APART


def test_a_waiting_job_has_no_claim_and_no_end() -> None:
    others = {field.name for field in STORED_FIELDS if field not in WAITING_FIELDS}

    assert others == {"claimed_at", "lease_expires_at", "worker", "finished_at", "result", "result_codec"}


def test_the_fields_that_tell_where_a_job_comes_from_are_fields_of_both_records() -> None:
    assert set(ORIGIN_FIELDS) <= set(Job._fields) & set(PreparedJob._fields)


def test_a_field_that_a_caller_gives_has_the_type_that_the_job_has() -> None:
    given = PreparedJob.__annotations__
    differ = [field.name for field in JOB_FIELDS if given.get(field.name, field.type) != field.type]

    # without a time the job runs at once
    assert differ == ["run_at"]


def test_secrets_are_in_what_a_caller_gives_and_in_what_a_handler_returns() -> None:
    assert {"payload", "headers", "result"} == FIELDS_WITH_SECRETS
