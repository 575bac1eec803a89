from datetime import UTC, datetime
from typing import Any

import pytest

from tests.http.given_app import LIMITED, GivenApp, an_app
from windlass.api.roles import Role
from windlass.core.duration import EPOCH
from windlass.core.stats import BOUNDS
from windlass.testing.clock import START

NIGHTLY = {"id": "nightly", "rule": "0 2 * * *", "job": {"queue": "reports", "payload": {"n": 1}}}
SERVER: dict[str, Any] = {
    "id": "web#1",
    "name": "web",
    "host": "h",
    "pid": 1,
    "version": "1",
    "started_at": "2020-01-01T00:00:00Z",
    "seen_at": "2020-01-01T00:00:00Z",
    "queues": ["mine"],
}


async def test_a_schedule_is_put_steered_and_removed() -> None:
    async with an_app() as given:
        made = await given.done("/schedules/put", {**NIGHTLY, "timezone": "Europe/Berlin"}, who=Role.OPERATE)
        await given.done("/schedules/pause", {"id": "nightly"}, who=Role.OPERATE)
        paused = await _schedule(given)
        await given.done("/schedules/resume", {"id": "nightly"}, who=Role.OPERATE)
        ran = await given.done("/schedules/run", {"id": "nightly"}, who=Role.OPERATE)
        job = await given.client.get(ran["job_id"])
        removed = [(await given.done("/schedules/remove", {"id": "nightly"}))["removed"] for _ in range(2)]

    assert (made["payload"], made["timezone"], paused["paused"]) == ({"n": 1}, "Europe/Berlin", True)
    assert job is not None
    assert (job.queue, job.payload, job.schedule_id) == ("reports", b'{"n":1}', "nightly")
    assert removed == [True, False]


async def test_a_schedule_that_is_run_twice_by_a_repeat_makes_one_job() -> None:
    async with an_app() as given:
        await given.done("/schedules/put", NIGHTLY)
        ran = [await given.done("/schedules/run", {"id": "nightly"}, request="1") for _ in range(2)]

        assert ran[0] == ran[1]
        assert (await given.client.stats("reports")).pending == 1
        assert [entry.action for entry in await given.client.store.audit(limit=9)] == ["run schedule", "put schedule"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": "0 25 * * *"},
        {"rule": "whenever"},
        {"rule": 0},
        {"timezone": "Atlantis/City"},
        {"id": "no spaces"},
        {"job": {"queue": "reports", "delay": 5}},
        {"job": {"queue": "reports", "payload": 1, "codec": "json"}},
        {"overlap": "perhaps"},
    ],
)
async def test_a_schedule_that_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    async with an_app() as given:
        reply = await given.post("/schedules/put", {**NIGHTLY, **wrong})

        assert reply.status == 422, reply.body
        assert await given.client.schedules.list() == []


@pytest.mark.parametrize("way", ["pause", "resume", "run"])
async def test_a_schedule_that_is_not_here_is_not_found(way: str) -> None:
    async with an_app() as given:
        reply = await given.post(f"/schedules/{way}", {"id": "nightly"})

    assert (reply.status, reply.error) == (404, "schedule_not_found")


async def test_a_schedule_is_written_only_over_what_its_writer_has_seen() -> None:
    async with an_app() as given:
        await given.done("/schedules/put", NIGHTLY)
        found = await _schedule(given)
        written = {"schedule": {**found, "declared": True}, "expected": found["revision"]}
        first = await given.done("/schedules/write", written, who=Role.WORK)
        second = await given.done("/schedules/write", written, who=Role.WORK)
        bad = await given.post("/schedules/write", {"schedule": {**found, "queue": "no spaces"}, "expected": 9})

    assert first["revision"] > found["revision"]
    assert second == {}
    assert bad.status == 422


async def test_a_schedule_is_fired_once_for_its_revision() -> None:
    async with an_app() as given:
        await given.done("/schedules/put", NIGHTLY)
        found = await _schedule(given)
        jobs = [{"queue": "reports", "schedule_id": "nightly"}]
        firing = {"id": "nightly", "revision": found["revision"], "jobs": jobs}
        fired = [await given.done("/schedules/fire", firing, who=Role.WORK) for _ in range(2)]
        due = await given.done("/schedules/due", {}, who=Role.WORK)

    assert [each["outcome"] for each in fired] == ["done", "lost"]
    assert (due["due"], due["next_run_at"]) == ([], found["next_run_at"])


async def test_values_are_written_read_and_listed() -> None:
    async with an_app() as given:
        binary = {"base64": "/w=="}
        written = [
            (await given.done("/kv/write", asked))["written"]
            for asked in (
                {"key": "a", "value": "1"},
                {"key": "a", "value": "2", "expected": "0"},
                {"key": "a", "value": binary, "expected": "1"},
                {"key": "b", "value": "3", "expected": None},
                {"key": "b", "value": "4", "expected": None},
                {"key": "c"},
            )
        ]
        told = await given.done("/kv/get", {"keys": ["a", "b", "c"]}, who=Role.PRODUCE)
        page = await given.done("/kv/scan", {"limit": 1, "after": "a"}, who=Role.WORK)
        last = await given.done("/kv/scan", {"limit": 1, "after": "b"}, who=Role.WORK)

    assert written == [True, False, True, True, False, True]
    assert told["values"] == [binary, "3", None]
    assert page == {"pairs": [{"key": "b", "value": "3"}], "next": "b"}
    assert last == {"pairs": []}


async def test_a_lock_has_one_holder() -> None:
    async with an_app() as given:
        taken = [
            (await given.done("/locks/take", {"name": "l", "holder": holder, "ttl": 60}))["held"] for holder in "aab"
        ]

    assert taken == [True, True, False]


async def test_a_server_is_shown_with_the_time_of_this_side() -> None:
    async with an_app() as given:
        await given.done("/servers/beat", {"server": SERVER}, who=Role.WORK)
        [server] = (await given.get("/servers", who=Role.VIEW)).document["servers"]
        await given.done("/servers/leave", {"id": "web#1"}, who=Role.WORK)

        assert server["started_at"] > "2026"
        assert (await given.get("/servers")).document == {"servers": []}


async def test_who_is_limited_to_a_queue_cannot_stand_in_for_a_server_of_others() -> None:
    async with an_app() as given:
        await given.done("/servers/beat", {"server": {**SERVER, "queues": ["theirs"]}})
        over = await given.post("/servers/beat", {"server": SERVER}, who=LIMITED)
        own = await given.post("/servers/beat", {"server": {**SERVER, "id": "web#2"}}, who=LIMITED)
        await given.done("/servers/leave", {"id": "web#1"}, who=LIMITED)
        told = (await given.get("/servers", who=LIMITED)).document["servers"]
        there = [server.id for server in await given.client.store.servers()]

    assert (over.status, own.status) == (403, 200)
    assert [server["id"] for server in told] == ["web#2"]
    assert sorted(there) == ["web#1", "web#2"]


async def test_an_operator_does_once_what_services_do() -> None:
    async with an_app(keep_succeeded=3600) as given:
        [claim, late] = await given.claimed("a", "a")
        held = {"id": late["job"]["id"], "token": late["token"]}
        await given.done("/claims/renew", {"claims": [held], "lease": 0})
        rescued = await given.done("/services/rescue", {}, who=Role.OPERATE)
        forced = await given.done("/services/rescue", {"force": True, "to": "dead", "queues": ["a"]}, who=Role.OPERATE)
        forever = {"succeeded": None, "dead": 0, "cancelled": None}
        pruned = await given.done("/services/prune", {"retention": {"default": forever}}, who=Role.OPERATE)
        promoted = await given.done("/services/promote", {}, who=Role.OPERATE)
        [entry] = (await given.get("/audit", who=Role.OPERATE)).document["entries"]
        assert (await given.get("/audit?limit=1", who=Role.OPERATE)).document.get("more", False) is False

    assert rescued["rescued"] == [{"id": late["job"]["id"], "state": "pending"}]
    assert forced["rescued"] == [{"id": claim["job"]["id"], "state": "dead"}]
    assert (pruned, promoted) == ({"count": 1}, {"count": 0})
    assert (entry["actor"], entry["action"], entry["target"]) == ("operate", "rescue", "a")
    assert entry["detail"] == {"count": "1", "to": "dead"}


async def test_queues_are_counted_and_paused() -> None:
    async with an_app() as given:
        await given.done("/jobs", {"jobs": [{"queue": "a", "kind": "k"}, {"queue": "b", "delay": 60}]})
        await given.done("/queues/pause", {"queue": "b"})
        rows = (await given.get("/queues", who=Role.PRODUCE)).document["queues"]
        [one] = (await given.get("/queues?queue=a")).document["queues"]
        paused = await given.done("/queues/paused", {"queues": ["a", "b"]})
        await given.done("/queues/resume", {"queue": "b"})
        due = await given.done("/queues/due", {"queues": ["a", "b"]}, who=Role.VIEW)
        kinds = await given.done("/queues/kinds", {"queue": "a"}, who=Role.VIEW)
        look = await given.get("/minutes?since=2020-01-01T00:00:00Z&until=2999-01-01T00:00:00Z")
        minutes = look.document["minutes"]

    assert [(row["queue"], row.get("paused", False), row.get("pending", 0)) for row in rows] == [
        ("a", False, 1),
        ("b", True, 0),
    ]
    assert (one["queue"], paused, kinds) == ("a", {"names": ["b"]}, {"names": ["k"]})
    assert 50 < due["due_in"] <= 60
    assert sum(row["counts"]["enqueued"] for row in minutes) == 2


TIMING: dict[str, Any] = {
    "minute": "2026-01-01T01:00:00+01:00", "queue": "q", "kind": "", "what": "ran", "range": 3, "attempts": 2,
}  # fmt: skip


async def test_timings_are_added_up_once() -> None:
    async with an_app() as given:
        for request in ("1", "1", "2"):
            await given.done("/timings", {"timings": [TIMING]}, who=Role.WORK, request=request)
        look = "/timings?since=2026-01-01T00:00:00Z&until=2026-01-01T00:01:00Z"
        told = (await given.get(look, who=Role.VIEW)).document

    assert told == {"bounds": list(BOUNDS), "timings": [{**TIMING, "minute": "2026-01-01T00:00:00Z", "attempts": 4}]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"minute": "2026-01-01T00:00:00"},
        {"queue": "no spaces"},
        {"kind": "no spaces"},
        {"what": "slept"},
        {"range": len(BOUNDS) + 1},
        {"range": -1},
        {"attempts": -1},
        {"attempts": 2**31},
    ],
)
async def test_a_timing_that_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    async with an_app() as given:
        reply = await given.post("/timings", {"timings": [TIMING, {**TIMING, **wrong}]})

        assert reply.status == 422
        assert await given.client.store.timings(since=EPOCH, until=START) == []


async def test_a_timing_counts_for_the_minute_of_its_time() -> None:
    async with an_app() as given:
        await given.done("/timings", {"timings": [{**TIMING, "minute": "2026-01-01T00:00:59.5Z"}]}, who=Role.WORK)
        rows = await given.client.store.timings(since=EPOCH, until=datetime.max.replace(tzinfo=UTC))

    assert [row.minute for row in rows] == [datetime(2026, 1, 1, tzinfo=UTC)]


async def _schedule(given: GivenApp) -> Any:  # noqa: ANN401 - the JSON edge
    [found] = (await given.done("/schedules/get", {"ids": ["nightly"]}, who=Role.VIEW))["schedules"]
    return found
