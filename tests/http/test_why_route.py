from tests.http.given_app import LIMITED, an_app
from windlass.api.roles import Role
from windlass.testing import FakeClock
from windlass.testing.clock import START

LOST = "0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d"
NOW = START.isoformat().replace("+00:00", "Z")


async def test_the_reasons_of_a_job_are_told_with_their_facts() -> None:
    async with an_app(clock=FakeClock()) as given:
        told = await given.done("/jobs", {"jobs": [{"queue": "q", "delay": 60}]})
        [job_id] = (each["id"] for each in told["jobs"])
        why = (await given.get(f"/jobs/{job_id}/why", who=Role.VIEW)).document
        unknown = await given.get(f"/jobs/{LOST}/why")

    assert (why["id"], why["now"], why["state"], why["reasons"][0]["name"]) == (job_id, NOW, "scheduled", "run_later")
    assert why["reasons"][0]["facts"] == {"run_at": "2026-01-01T12:01:00+00:00", "seconds": 60.0}
    assert why["reasons"][0]["advice"] == f"to run it at once: windlass jobs run-now {job_id}"
    assert (unknown.status, unknown.error) == (404, "job_not_found")


async def test_who_did_it_is_told_to_those_alone_who_may_see_the_audit() -> None:
    async with an_app() as given:
        told = await given.done("/jobs", {"jobs": [{"queue": "q"}]})
        [job_id] = (each["id"] for each in told["jobs"])
        await given.done("/jobs/cancel", {"ids": [job_id]})
        by = [
            (await given.get(f"/jobs/{job_id}/why", who=who)).document["reasons"][0]["facts"]["by"]
            for who in (Role.VIEW, Role.WORK, Role.OPERATE, Role.ADMIN)
        ]

    assert by[:2] == [None, None]
    assert all(by[2:])


async def test_a_token_that_is_limited_to_queues_is_not_told_half_of_it() -> None:
    async with an_app() as given:
        told = await given.done("/jobs", {"jobs": [{"queue": "q"}]})

        assert (await given.get(f"/jobs/{told['jobs'][0]['id']}/why", who=LIMITED)).status == 403
        assert (await given.get(f"/jobs/{LOST}/why", who=Role.PRODUCE)).status == 403
