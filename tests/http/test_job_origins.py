"""Which job, schedule and limit a job is counted to is not for every token to say."""

from typing import Any

import pytest

from tests.http.given_app import LIMITED, GivenApp, an_app
from windlass.api.roles import Role

OTHER = "0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d"
FIELDS = {"parent_id": OTHER, "schedule_id": "nightly", "limit_key": "smtp"}
FIELD = pytest.mark.parametrize("field", FIELDS)


async def refused(given: GivenApp, path: str, asked: object, who: str, field: str) -> None:
    reply = await given.post(path, asked, who=who)

    assert (reply.status, reply.document["error"]) == (403, "not_allowed")
    assert f"may not set {field} of a job to {FIELDS[field]}: leave it out" in reply.document["message"]


@FIELD
@pytest.mark.parametrize("who", [Role.PRODUCE, Role.WORK, LIMITED])
async def test_a_producer_gives_a_job_no_origin(who: str, field: str) -> None:
    job = {"queue": "mine", field: FIELDS[field]}
    async with an_app() as given:
        await refused(given, "/jobs", {"jobs": [{"queue": "mine"}, job]}, who, field)
        told = await given.done("/jobs/batches", {"batches": [[job], [{"queue": "mine", "kind": "good"}]]}, who=who)

        assert told["batches"][0]["problem"]["error"] == "not_allowed"
        assert field in told["batches"][0]["problem"]["message"]
        assert [each.kind for each in await given.client.jobs()] == ["good"]


@FIELD
async def test_an_administrator_of_all_queues_gives_a_job_any_origin(field: str) -> None:
    async with an_app() as given:
        told = await given.done("/jobs", {"jobs": [{"queue": "mine", field: FIELDS[field]}]})
        job = await given.client.get(told["jobs"][0]["id"])

    assert getattr(job, field) == FIELDS[field]


@FIELD
@pytest.mark.parametrize("who", [Role.WORK, LIMITED])
async def test_a_follow_up_comes_of_the_job_that_ends(who: str, field: str) -> None:
    async with an_app() as given:
        first, second, third = await given.claimed("mine", "mine", "mine")
        own = first["job"]["id"]
        told = await given.done(
            "/claims/settle",
            {
                "settlements": [
                    _ack(first, {"queue": "mine", "kind": "said", "parent_id": own.upper()}),
                    _ack(second, {"queue": "mine", "kind": "refused", field: FIELDS[field]}),
                    _ack(third, {"queue": "mine", "kind": "silent"}),
                ]
            },
            who=who,
        )

        assert [each["outcome"] for each in told["settled"]] == ["done", "refused", "done"]
        assert field in told["settled"][1]["problem"]["message"]
        parents = {job.kind: job.parent_id for job in await given.client.jobs() if job.kind is not None}
        assert parents == {"said": own, "silent": third["job"]["id"]}


@FIELD
@pytest.mark.parametrize("who", [Role.WORK, Role.OPERATE, LIMITED])
async def test_a_firing_makes_jobs_of_its_own_schedule(who: str, field: str) -> None:
    async with an_app() as given:
        put = await given.done("/schedules/put", {"id": "own", "rule": 60, "job": {"queue": "mine"}})
        jobs = [{"queue": "mine", "schedule_id": "own"}]
        firing: dict[str, Any] = {"id": "own", "revision": put["revision"], "jobs": jobs}
        await refused(given, "/schedules/fire", {**firing, "jobs": [{**jobs[0], field: FIELDS[field]}]}, who, field)
        fired = await given.done("/schedules/fire", firing, who=who)

        assert fired["outcome"] == "done"
        assert [job.schedule_id for job in await given.client.jobs()] == ["own"]


@FIELD
async def test_the_job_of_a_schedule_has_no_origin_that_would_be_ignored(field: str) -> None:
    put = {"id": "own", "rule": 60, "job": {"queue": "mine", field: FIELDS[field]}}
    async with an_app() as given:
        reply = await given.post("/schedules/put", put)

        assert (reply.status, reply.document["error"]) == (422, "invalid_value")
        assert f"the job of a schedule has no {field}" in reply.document["message"]
        assert await given.client.schedules.list() == []


def _ack(claim: Any, *then: object) -> dict[str, object]:  # noqa: ANN401 - the JSON edge
    return {"do": "ack", "id": claim["job"]["id"], "token": claim["token"], "then": then}
