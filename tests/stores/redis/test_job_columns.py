"""What scripts answer about a job, compared with the fields of a job."""

from tests.job_samples import FULL
from windlass.core.duration import to_micros
from windlass.core.job import STORED_FIELDS
from windlass.stores.redis.replies import Body, ClaimRow, Head, JobRow, More, claim_of, job_of

STORED = FULL._replace(history=(), log=(), damage=None)
HEAD = Head(STORED.seq, STORED.queue, "send", STORED.priority, STORED.max_attempts, to_micros(STORED.created_at))
BODY = Body(STORED.codec, STORED.payload)
MORE = More(dict(STORED.headers), STORED.tenant, STORED.parent_id, STORED.schedule_id, STORED.limit_key)
NOON, LATER = to_micros(STORED.created_at), to_micros(STORED.run_at)


def test_a_job_has_each_field() -> None:
    row = JobRow(
        STORED.id, "scheduled", LATER, 2, 3, NOON, LATER, "worker-1", "ValueError: no", "json", cancel=True, key="ada",
        head=HEAD, body=BODY, lease=LATER, result=b"[1]", progress=(1.5, 10.0, "sent"), more=MORE,
    )  # fmt: skip

    assert tuple(job_of(row)) == tuple(STORED), f"read in job_of in replies.py: {_names()}"


def test_a_claim_has_each_field() -> None:
    row = ClaimRow(
        STORED.id, "a-token", 2, 3, NOON, LATER, LATER, "ValueError: no", cancel=True, key="ada", head=HEAD, body=BODY,
        more=MORE,
    )  # fmt: skip

    job = claim_of(row, "worker-1").job

    assert len(job) == len(STORED), f"read in claim_of in replies.py: {_names()}"
    only_of_others = {"state", "finished_at", "result", "result_codec", "progress"}
    differ = {name for name, one, other in zip(STORED._fields, job, STORED, strict=True) if one != other}
    assert differ == only_of_others


def _names() -> str:
    return ", ".join(field.name for field in STORED_FIELDS)
