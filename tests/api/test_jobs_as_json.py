"""The JSON of a job: stores over HTTP, parcels of a move and programs in any language read and write it."""

from typing import Final

import msgspec
import pytest

from tests.job_samples import JOBS
from windlass.api import jobs as api
from windlass.api.jobs import Job, job_of, told
from windlass.core import job as core

_BEGIN_OF_FULL: Final = (
    '{"seq":2,"id":"019c1400-0000-7000-8000-000000000002","queue":"mail","state":"scheduled","priority":100,"attempt":2,'
    '"max_attempts":5,"delivery":3,"created_at":"2026-01-31T12:00:00Z","run_at":"2026-01-31T12:00:01.250000Z",'
    '"codec":"json",'
)
_MIDDLE_OF_FULL: Final = (
    '"kind":"send","headers":{"trace":"1-2"},"tenant":"acme","claimed_at":"2026-01-31T12:00:00Z",'
    '"lease_expires_at":"2026-01-31T12:00:01.250000Z","finished_at":"2026-01-31T12:00:01.250000Z","worker":"worker-1",'
    '"last_error":"ValueError: no",'
)
_END_OF_FULL: Final = (
    '"result_codec":"json","progress":{"done":1.5,"total":10.0,"note":"sent"},"cancel_requested":true,'
    '"unique_key":"ada","parent_id":"019c1400-0000-7000-8000-000000000001","schedule_id":"daily","limit_key":"smtp",'
    '"history":[{"delivery":2,"attempt":1,"started_at":"2026-01-31T12:00:00Z","ended_at":"2026-01-31T12:00:01.250000Z",'
    '"worker":"worker-1","outcome":"failed","failure":{"message":"no","type":"ValueError","traceback":"Traceback",'
    '"module":"shop"},"retried_at":"2026-01-31T12:00:01.250000Z"},{"delivery":3,"attempt":2,'
    '"started_at":"2026-01-31T12:00:01.250000Z","worker":"worker-2"}],"log":[{"at":"2026-01-31T12:00:00Z",'
    '"level":"info","text":"begins","delivery":2}],"damage":"headers is not JSON"}'
)
WRITTEN: Final = {
    "bare": (
        '{"seq":1,"id":"019c1400-0000-7000-8000-000000000001","queue":"mail","state":"pending","priority":1000,'
        '"attempt":0,"max_attempts":5,"delivery":0,"created_at":"2026-01-31T12:00:00Z",'
        '"run_at":"2026-01-31T12:00:00Z","codec":"raw","payload_base64":"AP8="}'
    ),
    "full": (
        f'{_BEGIN_OF_FULL}"payload_base64":"eyJ0byI6ICJhZGEifQ==",{_MIDDLE_OF_FULL}"result_base64":"WzFd",{_END_OF_FULL}'
    ),
}
"""The bytes that the first version wrote, with the fields that came later."""


@pytest.mark.parametrize("name", JOBS)
def test_a_job_is_written_in_the_same_bytes_by_every_version(name: str) -> None:
    assert msgspec.json.encode(told(JOBS[name], as_bytes=True)).decode() == WRITTEN[name]


def test_a_payload_and_a_result_that_are_json_stand_in_the_job_as_they_are() -> None:
    written = msgspec.json.encode(told(JOBS["full"])).decode()

    assert written == f'{_BEGIN_OF_FULL}"payload":{{"to": "ada"}},{_MIDDLE_OF_FULL}"result":[1],{_END_OF_FULL}'


@pytest.mark.parametrize("name", JOBS)
def test_a_job_is_read_as_it_was_written(name: str) -> None:
    assert job_of(msgspec.json.decode(WRITTEN[name], type=Job)) == JOBS[name]


@pytest.mark.parametrize("name", ["Progress", "LogLine", "Failure", "Delivery"])
def test_the_parts_of_a_job_have_the_same_fields_in_the_same_order_in_json(name: str) -> None:
    fields = getattr(core, name)._fields

    assert getattr(api, name).__struct_fields__ == fields, f"write in {name} in api/jobs.py: {', '.join(fields)}"


def test_json_has_no_field_that_a_job_has_not() -> None:
    # bytes that are not JSON stand in a field of their own
    assert {name.removesuffix("_base64") for name in Job.__struct_fields__} == set(core.Job._fields)
