import json
from base64 import b64decode, b64encode
from typing import Any

import pytest

from tests.http.asgi import Sender, ask
from tests.http.given_app import LIMITED, an_app, secret_of
from tests.http.given_tokens import bearer
from windlass import NewJob
from windlass.api.roles import Role
from windlass.codec import Encoded
from windlass.core.ids import JobId
from windlass.core.looks import AuditEntry
from windlass.core.states import State
from windlass.http.routes import jobs
from windlass.testing import FakeClock
from windlass.testing.clock import START

LOST = "0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d"


async def test_a_job_is_put_in_line_with_all_that_is_said_of_it() -> None:
    wanted = {
        "queue": "email",
        "payload": {"to": "ü"},
        "id": LOST.upper().replace("-", ""),
        "kind": "welcome",
        "priority": 5,
        "delay": 60,
        "max_attempts": 7,
        "unique": {"key": "k", "scope": "kind", "until": "finished"},
        "headers": {"trace": "1"},
        "tenant": "acme",
        "parent_id": LOST,
        "schedule_id": "nightly",
        "limit_key": "smtp",
        "kv": [{"key": "seen", "value": "yes"}],
    }
    async with an_app() as given:
        told = await given.done("/jobs", {"jobs": [wanted]}, who=Role.ADMIN)
        job = await given.client.get(LOST)

        assert told == {"jobs": [{"id": LOST, "created": True}]}
        assert job is not None
        assert (job.payload, job.codec, job.kind, job.priority) == ('{"to":"ü"}'.encode(), "json", "welcome", 5)
        assert (job.max_attempts, job.unique_key, job.headers) == (7, "k", {"trace": "1"})
        assert (job.tenant, job.parent_id, job.schedule_id, job.limit_key) == ("acme", LOST, "nightly", "smtp")
        assert job.state is State.SCHEDULED
        assert await given.client.kv.get("seen") == b"yes"


async def test_what_is_left_out_is_taken_from_the_settings_of_the_serving_side() -> None:
    async with an_app(max_attempts=9, priority=3) as given:
        [made] = await given.enqueued("email")
        job = await given.client.get(made)

    assert job is not None
    assert (job.max_attempts, job.priority) == (9, 3)


async def test_bytes_come_back_as_they_were_sent() -> None:
    payload = bytes(range(256))
    async with an_app() as given:
        sent = {"queue": "q", "payload_base64": b64encode(payload).decode(), "codec": "pickled"}
        [made] = (await given.done("/jobs", {"jobs": [sent]}))["jobs"]
        told = (await given.get(f"/jobs/{made['id']}")).document

    assert (told["payload_base64"], told["codec"]) == (sent["payload_base64"], "pickled")


@pytest.mark.parametrize("payload", ["null", "0", '"ü"', "[1, 2]", '{"b":1,"a":[{}]}', "1.5e-7"])
async def test_a_payload_of_json_is_kept_as_it_was_written(payload: str) -> None:
    body = f'{{"jobs":[{{"queue":"q","payload":{payload}}}]}}'.encode()
    async with an_app() as given:
        made = (await _post_raw(given.api, "/api/v1/jobs", body)).document["jobs"][0]["id"]
        job = await given.client.get(made)
        told = await given.get(f"/jobs/{made}")

    assert job is not None
    assert job.payload == payload.encode()
    assert f'"payload":{payload}'.encode() in told.body


async def test_of_several_batches_one_that_is_wrong_is_refused_alone() -> None:
    async with an_app() as given:
        batches: list[Any] = [
            [{"queue": "a"}, {"queue": "b"}],
            [{"queue": "a"}, {"queue": "no spaces"}],
            [{"queue": "a", "payload": 1, "codec": "x"}],
            [],
            [{"queue": "c"}],
        ]
        told = (await given.done("/jobs/batches", {"batches": batches}))["batches"]

        assert [len(each.get("jobs", ())) for each in told] == [2, 0, 0, 0, 1]
        assert [each.get("problem", {}).get("error") for each in told] == [
            None,
            "invalid_name",
            "invalid_value",
            None,
            None,
        ]
        assert [row.pending for row in await given.client.store.stats()] == [1, 1, 1]


async def test_a_unique_key_that_is_held_is_a_conflict_with_its_facts() -> None:
    held = {"queue": "q", "unique": {"key": "k", "on_conflict": "raise"}}
    async with an_app() as given:
        [made] = (await given.done("/jobs", {"jobs": [held]}))["jobs"]
        reply = await given.post("/jobs", {"jobs": [held]})

    assert (reply.status, reply.error) == (409, "unique_conflict")
    assert reply.document["facts"] == {"key": "k", "job_id": made["id"], "why": "held"}


@pytest.mark.parametrize(
    "body, status, part",
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b'{"jobs":[]} x', 400, "not JSON"),
        (b'{"jobs":[{"queue":"q","payload":"\xff"}]}', 400, "not JSON"),
        (b'{"jobs":[{"queue":"q","payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}", 400, "not JSON"),
        (b'{"jobs":[{"queue":"q","payload":NaN}]}', 400, "not JSON"),
        (b"[]", 422, "Expected `object`"),
        (b'{"jobs":[{}]}', 422, "missing required field `queue` - at `$.jobs[0]`"),
        (b'{"jobs":[{"queue":"q","payload":1e999}]}', 422, "out of all range"),
        (b'{"jobs":[{"queue":"q","delay":-1}]}', 422, "$.jobs[0].delay"),
        (b'{"jobs":[{"queue":"q","delay":1,"run_at":"2026-01-01T00:00:00Z"}]}', 422, "run_at or delay"),
        (b'{"jobs":[{"queue":"q","run_at":"2026-01-01T00:00:00"}]}', 422, "$.jobs[0].run_at"),
        (b'{"jobs":[{"queue":"q","run_at":"0001-01-01T00:00:00+14:00"}]}', 422, "run_at"),
        (b'{"jobs":[{"queue":"q","priority":99999999999999999999}]}', 422, "priority"),
        (b'{"jobs":[{"queue":"q","id":"1"}]}', 422, "$.jobs[0].id"),
        (b'{"jobs":[{"queue":"q","headers":{"a b":"c"}}]}', 422, "header key"),
        (b'{"jobs":[{"queue":"q","kv":[{"key":""}]}]}', 422, "kv key"),
        (b'{"jobs":[{"queue":"q","cron":"*"}]}', 422, "unknown field `cron`"),
    ],
)
async def test_a_body_that_does_not_fit_is_refused_with_the_place(body: bytes, status: int, part: str) -> None:
    async with an_app() as given:
        reply = await _post_raw(given.api, "/api/v1/jobs", body)

        assert (reply.status, part in reply.document["message"]) == (status, True), reply.body
        assert await given.client.queues() == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=x",
        "limit=1&limit=2",
        "nonsense=1",
        "state=lost",
        "until=null",
        "until=5",
        "queue=%ff",
        "queue=",
        "queue=a%20b",
        "text=a%00b",
        "payload=xml",
        "after=-1",
        "since=2026-01-01",
    ],
)
async def test_a_query_that_does_not_fit_is_refused(query: str) -> None:
    async with an_app() as given:
        reply = await given.get(f"/jobs?{query}")

    assert reply.status == 422, reply.body
    assert reply.error in ("invalid_value", "invalid_name")


async def test_jobs_are_listed_page_by_page() -> None:
    async with an_app() as given:
        ids = await given.enqueued("a", "b", "a", "a")
        first = (await given.get("/jobs?queue=a&limit=2")).document
        rest = (await given.get(f"/jobs?queue=a&limit=2&after={first['next']}")).document

    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == [ids[0], ids[2], ids[3]]
    assert "next" not in rest


async def test_the_newest_jobs_are_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_app() as given:
        ids = await given.enqueued(*"aabaa")
        first = (await given.get("/jobs/newest?queue=a&limit=2", who=Role.VIEW)).document
        rest = (await given.get(f"/jobs/newest?queue=a&before={first['next']}", who=Role.VIEW)).document
        few = (await given.get("/jobs/newest?most=1&queue=b", who=Role.VIEW)).document
        monkeypatch.setattr(jobs, "LARGEST_PAGE", 1)
        cut = (await given.get("/jobs/newest")).document
        next_one = (await given.get(f"/jobs/newest?before={cut['next']}&limit=1")).document

    assert [job["id"] for job in (*first["jobs"], *rest["jobs"])] == [ids[n] for n in (4, 3, 1, 0)]
    assert "next" not in rest
    # one record was looked at, and it leads on
    assert (few["jobs"], few["next"] > 1) == ([], True)
    assert [job["id"] for job in (*cut["jobs"], *next_one["jobs"])] == ids[:2:-1]


async def test_dead_jobs_are_listed_the_last_to_die_first(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    async with an_app(clock=clock) as given:
        ids = await given.enqueued(*"aabaa")
        claims = {claim.job.id: claim for queue in "ab" for claim in await given.client.claim_many(queue, limit=5)}
        for number in (3, 0, 4, 2, 1):
            clock.advance(1)
            await given.client.dead_letter(claims[JobId(ids[number])], "no")

        first = (await given.get("/jobs/dead?queue=a&limit=2", who=Role.VIEW)).document
        rest = (await given.get(f"/jobs/dead?queue=a&before={first['next']}", who=Role.VIEW)).document
        every = (await given.get("/jobs/dead", who=Role.VIEW)).document
        past = (await given.get(f"/jobs/dead?before={every['cursors'][3]}")).document
        monkeypatch.setattr(jobs, "LARGEST_PAGE", -1)
        cut = (await given.get("/jobs/dead")).document

    assert [job["id"] for job in (*first["jobs"], *rest["jobs"])] == [ids[n] for n in (1, 4, 0, 3)]
    assert (first["next"], "next" in rest) == (first["cursors"][-1], False)
    assert [job["id"] for job in every["jobs"]] == [ids[n] for n in (1, 2, 4, 0, 3)]
    assert [job["id"] for job in past["jobs"]] == [ids[3]]
    assert ([job["id"] for job in cut["jobs"]], cut["next"]) == ([ids[1]], every["cursors"][0])


@pytest.mark.parametrize(
    "query",
    ["limit=0", "before=1", "before=x-1", f"before={2**63}-1", "before=1-1%0A", "state=dead", "queue=%C3%97", "queue="],
)
async def test_a_look_for_dead_jobs_that_does_not_fit_is_refused(query: str) -> None:
    async with an_app() as given:
        assert (await given.get(f"/jobs/dead?{query}")).status == 422


@pytest.mark.parametrize("query", ["limit=0", "most=0", "most=100001", "before=-1", "state=odd", "after=1"])
async def test_a_look_for_the_newest_that_does_not_fit_is_refused(query: str) -> None:
    async with an_app() as given:
        assert (await given.get(f"/jobs/newest?{query}")).status == 422


async def test_a_place_in_line_is_told() -> None:
    async with an_app(clock=FakeClock()) as given:
        keyed = {"queue": "q", "unique": {"key": "k", "until": "finished"}}
        told = await given.done("/jobs", {"jobs": [{"queue": "q"}, keyed, {"queue": "q", "delay": 60}]})
        first, second, later = (each["id"] for each in told["jobs"])
        places = [(await given.get(f"/jobs/{each}/place", who=Role.VIEW)).document for each in (first, second, later)]
        unknown = await given.get(f"/jobs/{LOST}/place")

    now = START.isoformat().replace("+00:00", "Z")
    assert places == [{"now": now, "ahead": 0}, {"now": now, "ahead": 1, "key_holder": second}, {"now": now}]
    assert (unknown.status, unknown.error) == (404, "job_not_found")


async def test_a_job_that_is_not_here_is_not_found() -> None:
    async with an_app() as given:
        reply = await given.get(f"/jobs/{LOST}")
        waited = await given.get(f"/jobs/{LOST}/wait?timeout=60")

    assert (reply.status, reply.error) == (404, "job_not_found")
    assert waited.document == {"outcome": "not_found"}


async def test_the_token_of_a_claim_is_told_to_those_who_work() -> None:
    async with an_app() as given:
        [claim] = await given.claimed("q")
        told = {who: (await given.done("/jobs/glance", {"ids": [claim["job"]["id"]]}, who=who))["jobs"] for who in Role}

    shown = {who for who, jobs in told.items() if jobs[claim["job"]["id"]].get("token") == claim["token"]}
    assert shown == {Role.WORK, Role.ADMIN}


async def test_what_operators_change_is_written_down_with_their_name() -> None:
    async with an_app() as given:
        one, two, three = await given.enqueued("a", "a", "b")
        await given.done("/jobs/reschedule", {"ids": [one]}, who=Role.OPERATE)
        await given.done("/jobs/cancel", {"ids": [one, two, LOST]}, who=Role.PRODUCE)
        await given.done("/jobs/retry", {"ids": [one, three]}, who=Role.OPERATE)
        await given.done("/jobs/delete", {"filter": {"queue": "a", "state": "cancelled"}}, who=Role.OPERATE)
        await given.done("/queues/pause", {"queue": "a"}, who=Role.OPERATE)
        await given.done("/schedules/put", {"id": "s", "rule": 60, "job": {"queue": "a"}}, who=Role.OPERATE)
        await given.done("/schedules/remove", {"id": "s"}, who=Role.OPERATE)
        await given.done("/schedules/remove", {"id": "s"}, who=Role.OPERATE)
        await given.done("/services/rescue", {}, who=Role.OPERATE)
        entries = await given.client.store.audit(limit=100)

    def shown(entry: AuditEntry) -> tuple[str, ...]:
        return entry.actor, entry.action, entry.target

    assert [shown(entry) for entry in reversed(entries)] == [
        ("operate", "reschedule", one),
        ("produce", "cancel", "2 jobs"),
        ("operate", "retry", one),
        ("operate", "delete", "1 job"),
        ("operate", "pause", "a"),
        ("operate", "put schedule", "s"),
        ("operate", "remove schedule", "s"),
    ]
    assert entries[5].detail == {"ids": f"{one} {two}"}
    assert entries[3].detail == {"count": "1", "queue": "a", "state": "cancelled"}


async def test_a_change_is_by_ids_or_by_a_filter() -> None:
    async with an_app() as given:
        for wrong in (b"{}", b'{"ids": [], "filter": {}}'):
            assert (await _post_raw(given.api, "/api/v1/jobs/retry", wrong)).status == 422


async def test_who_is_limited_to_a_queue_knows_nothing_of_others() -> None:
    async with an_app() as given:
        [other] = await given.enqueued("theirs")
        [mine] = await given.enqueued("mine")
        listed = (await given.get("/jobs", who=LIMITED)).document["jobs"]
        cancelled = await given.done("/jobs/cancel", {"ids": [other, mine]}, who=LIMITED)
        refused = await given.post("/jobs", {"jobs": [{"queue": "theirs"}]}, who=LIMITED)
        waited = await given.get(f"/jobs/{other}/wait?timeout=60", who=LIMITED)

    assert [job["id"] for job in listed] == [mine]
    assert cancelled["outcomes"] == ["not_found", "removed"]
    assert (refused.status, refused.error) == (403, "not_allowed")
    assert waited.document == {"outcome": "not_found"}


async def test_a_store_that_is_down_is_unavailable_for_now() -> None:
    async with an_app() as given:
        await given.client.enqueue_many([NewJob("q")])
        await given.client.close()
        reply = await given.post("/jobs", {"jobs": [{"queue": "q"}]})

    assert (reply.status, reply.error, reply.header("retry-after")) == (503, "client_closed", "1")


async def _post_raw(api: Any, path: str, body: bytes) -> Any:  # noqa: ANN401 - an app and its reply
    headers = [bearer(secret_of(Role.ADMIN)), ("content-type", "application/json"), ("content-length", str(len(body)))]
    return await ask(api, "POST", path, headers=headers, sender=Sender([body]))


@pytest.mark.parametrize("who", [Role.VIEW, Role.OPERATE])
@pytest.mark.parametrize("how", ["json", "base64"])
async def test_whoever_only_looks_sees_nothing_that_sounds_secret(who: Role, how: str) -> None:
    """Those who make payloads and results see them as they are."""
    payload = {"name": "Ada", "password": "canary", "cards": [{"api_key": "canary"}]}
    async with an_app() as given:
        done = await given.client.enqueue("a", payload, headers={"authorization": "canary", "trace": "1"})
        claim = await given.client.claim("a")
        assert claim is not None
        await given.client.ack(claim, {"token": "canary"})
        [listed] = (await given.get(f"/jobs?payload={how}", who=who)).document["jobs"]
        [newest] = (await given.get(f"/jobs/newest?payload={how}", who=who)).document["jobs"]
        one = (await given.get(f"/jobs/{done.id}?payload={how}", who=who)).document
        waited = (await given.get(f"/jobs/{done.id}/wait?payload={how}", who=who)).document["job"]
        [got] = (await given.done("/jobs/get", {"ids": [done.id], "payload": how}, who=who))["jobs"]
        made = (await given.get(f"/jobs/{done.id}?payload={how}", who=Role.PRODUCE)).document

    for job in (listed, newest, one, waited, got):
        assert _plain(job, "payload") == {"name": "Ada", "password": "***", "cards": [{"api_key": "***"}]}
        assert _plain(job, "result") == {"token": "***"}
        assert job["headers"] == {"authorization": "***", "trace": "1"}
    assert (_plain(made, "payload"), _plain(made, "result")) == (payload, {"token": "canary"})


@pytest.mark.parametrize("codec", ["json", "raw"])
async def test_whoever_only_looks_sees_no_secret_fields(codec: str) -> None:
    """The job tells which they are."""
    payload = {"pin": "canary", "cards": [{"number": "canary", "holder": "Ada"}], "n": 1}
    headers = {"windlass-secret": "pin,cards[].number,no.such[],]..["}
    async with an_app() as given:
        job = NewJob("a", Encoded(json.dumps(payload).encode(), codec), headers=headers)
        [done] = await given.client.enqueue_many([job])
        await given.client.schedules.put("nightly", "0 2 * * *", job)
        look = [await given.get(path, who=Role.VIEW) for path in (f"/jobs/{done.id}", "/jobs", "/jobs/newest")]
        look += [await given.post("/schedules/get", {}, who=who) for who in (Role.VIEW, Role.OPERATE)]
        made = (await given.get(f"/jobs/{done.id}", who=Role.PRODUCE)).document

    for told in (look[0].document, look[1].document["jobs"][0], look[3].document["schedules"][0]):
        assert _plain(told, "payload") == {"pin": "***", "cards": [{"number": "***", "holder": "Ada"}], "n": 1}
        assert told["headers"] == headers
    assert [b"canary" in each.body for each in look[:4]] == [False] * 4
    assert _plain(made, "payload") == payload
    # who may write a schedule back has to have all of it
    assert _plain(look[4].document["schedules"][0], "payload") == payload


def _plain(job: Any, field: str) -> object:  # noqa: ANN401 - as it was told
    return job[field] if field in job else json.loads(b64decode(job[f"{field}_base64"]))
