from pathlib import Path
from typing import Any

import pytest

from tests.http.given_app import LIMITED, GivenApp, an_app
from tests.http.hostile_calls import CORPUS
from windlass.api.roles import Role
from windlass.client import parcel_size
from windlass.core.moving import Moved

AWAY = {"to": "postgres://db/jobs", "move": "move-1"}
JOB: dict[str, Any] = {
    "seq": 1,
    "id": "0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d",
    "queue": "q",
    "state": "pending",
    "priority": 5,
    "attempt": 1,
    "max_attempts": 3,
    "delivery": 1,
    "created_at": "2026-01-01T01:00:00+01:00",
    "run_at": "2026-01-01T00:00:00Z",
    "codec": "raw",
    "payload_base64": "/w==",
}
KEY: dict[str, Any] = {"name": "queue||q|k", "job_id": JOB["id"], "until": "claimed", "digest_base64": "/w=="}


def _parcel(*jobs: object, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - the JSON edge
    return {"move": "move-1", "queue": "q", "number": 1, "jobs": jobs, **given}


async def _unpack(given: GivenApp, parcel: object, **options: Any) -> bool:  # noqa: ANN401 - as those of a call
    reply = await given.post("/move/unpack", parcel, **options)
    assert reply.status == 200, reply.body
    told: bool = reply.document["unpacked"]
    return told


async def test_a_store_that_was_moved_tells_everybody_where_to() -> None:
    async with an_app() as given:
        before = (await given.get("/move", who=Role.VIEW)).document
        await given.done("/move/set", {"moved": AWAY})
        refused = await given.post("/jobs", {"jobs": [{"queue": "q"}]}, who=Role.PRODUCE)
        told = [(await given.get("/move", who=who)).document for who in (Role.VIEW, Role.PRODUCE, LIMITED)]
        await given.done("/move/set", {"moved": None})
        await given.enqueued("q")
        written = [(entry.action, entry.target, entry.actor) for entry in await given.client.store.audit(limit=9)]

    assert (before, told) == ({}, [{"moved": AWAY}] * 3)
    assert (refused.status, refused.error, refused.header("retry-after")) == (410, "store_moved", None)
    assert refused.document["facts"]["to"] == AWAY["to"]
    assert written == [("set moved", "nowhere", "admin"), ("set moved", AWAY["to"], "admin")]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"moved": {}},
        {"moved": {**AWAY, "to": ""}},
        {"moved": {**AWAY, "to": "postgres://me:canary@db/jobs"}},
        {"moved": {**AWAY, "to": "https://jobs?token=canary"}},
        {"moved": {**AWAY, "to": "postgres://db/\r\n"}},
        {"moved": {**AWAY, "move": "no spaces"}},
    ],
)
async def test_a_place_to_go_that_is_none_or_tells_a_secret_is_refused(wrong: object) -> None:
    async with an_app() as given:
        reply = await given.post("/move/set", wrong)

        assert reply.status == 422
        assert b"canary" not in reply.body
        assert await given.client.store.moved() is None


async def test_a_parcel_is_packed_and_unpacked_whole() -> None:
    async with an_app() as given:
        assert await _unpack(given, _parcel(JOB, keys=[KEY]))
        packed = await given.done("/move/pack", {"queue": "q"})
        unpacked = await given.done("/move/unpacked", {"move": "move-1", "queue": "q"})
        none = await given.done("/move/unpacked", {"move": "move-2", "queue": "q"})
        await given.done("/move/let_go", {"jobs": [JOB["id"]], "keys": [], "kv": ["k"], "schedules": ["s"]})
        gone = await given.done("/move/pack", {"queue": "q"})

    [job] = packed["jobs"]
    assert {name: job[name] for name in ("id", "payload_base64", "attempt", "delivery", "created_at")} == {
        **{name: JOB[name] for name in ("id", "payload_base64", "attempt", "delivery")},
        "created_at": "2026-01-01T00:00:00Z",
    }
    assert (packed["keys"], unpacked, none, gone) == ([KEY], {"number": 1, "ids": [JOB["id"]]}, {}, {"jobs": []})


async def test_a_parcel_whose_reply_was_lost_is_known_by_its_number_and_its_jobs() -> None:
    other = {**JOB, "id": "0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4e"}
    async with an_app() as given:
        first = await _unpack(given, _parcel(JOB), request="1")
        # whoever asks again without having asked before is another mover
        another = await _unpack(given, _parcel(JOB), request="2")
        # by the same process, and by one that was started since
        repeats = [await _unpack(given, _parcel(JOB), request="1", serving=who) for who in (given.api.id, "gone")]
        stranger = await _unpack(given, _parcel(other), request="3", serving="gone")
        late = await _unpack(given, _parcel(JOB, number=2), request="4", serving="gone")

        assert (first, another, repeats, stranger, late) == (True, False, [True, True], False, True)
        assert (await given.client.stats("q")).pending == 1


@pytest.mark.parametrize(
    "wrong",
    [
        _parcel({**JOB, "queue": "other"}),
        _parcel({**JOB, "state": "running"}),
        _parcel({**JOB, "state": "perhaps"}),
        _parcel({**JOB, "id": "1"}),
        _parcel({**JOB, "payload": {"a": 1}}),
        _parcel({**JOB, "attempt": -1}),
        _parcel({**JOB, "delivery": 2**40}),
        _parcel({**JOB, "priority": -1}),
        _parcel({**JOB, "max_attempts": 0}),
        _parcel({**JOB, "kind": "no spaces"}),
        _parcel({**JOB, "headers": {"no spaces": "1"}}),
        _parcel({**JOB, "created_at": "2026-01-01T00:00:00"}),
        _parcel({**JOB, "created_at": "0001-01-01T00:00:00+09:00"}),
        _parcel({**JOB, "log": [{"at": "never", "level": "info", "text": "", "delivery": 1}]}),
        _parcel(JOB, JOB),
        _parcel(JOB, keys=[{**KEY, "job_id": "0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4e"}]),
        _parcel(JOB, keys=[{**KEY, "until": "time"}]),
        _parcel(JOB, keys=[{**KEY, "name": "no spaces"}]),
        _parcel(JOB, keys=[KEY, KEY]),
        _parcel(JOB, number=0),
        _parcel(JOB, move="no spaces"),
        _parcel(JOB, surprise=1),
    ],
)
async def test_a_parcel_that_no_store_has_packed_is_refused_whole(wrong: object) -> None:
    async with an_app() as given:
        reply = await given.post("/move/unpack", wrong)

        assert (reply.status, reply.error) in ((422, "invalid_value"), (422, "invalid_name"))
        assert await given.client.store.stats() == []
        assert await given.client.store.unpacked("move-1", "q") is None


@pytest.mark.parametrize(
    "path, wrong",
    [
        ("let_go", {"keys": ["no spaces"]}),
        ("let_go", {"kv": [""]}),
        ("let_go", {"jobs": ["1"]}),
        ("let_go", {"schedules": ["no spaces"]}),
        ("take_keys", {"keys": [KEY]}),
        ("take_keys", {}),
        ("pack", {"queue": "no spaces"}),
        ("pack", {"queue": "q", "limit": 0}),
        ("timed_keys", {"limit": 10_001}),
        ("unpacked", {"move": "m"}),
    ],
)
async def test_what_cannot_be_moved_is_refused(path: str, wrong: object) -> None:
    async with an_app() as given:
        assert (await given.post(f"/move/{path}", wrong)).status == 422


async def test_a_parcel_has_as_many_jobs_as_fit_and_their_keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcel_size, "MOST_BYTES", 1_000)
    payload = {"payload": "x" * 400}
    jobs = [{"queue": "q", "unique": f"key-{n}", **payload} for n in range(4)]
    async with an_app() as given:
        await given.done("/jobs", {"jobs": [*jobs, {"queue": "huge", "payload": "x" * 9_000}, {"queue": "huge"}]})
        packed = await given.done("/move/pack", {"queue": "q", "limit": 3})
        huge = await given.done("/move/pack", {"queue": "huge"})

    assert [job["unique_key"] for job in packed["jobs"]] == ["key-0", "key-1"]
    assert [key["name"] for key in packed["keys"]] == ["queue||q|key-0", "queue||q|key-1"]
    assert len(huge["jobs"]) == 1


async def test_hostile_text_in_a_parcel_is_only_text(tmp_path: Path) -> None:
    async with an_app(f"sqlite:///{tmp_path}/jobs.db?synchronous=normal") as given:
        for number, text in enumerate(CORPUS, 1):
            failure, at = {"message": text, "type": text, "traceback": text}, JOB["run_at"]
            ended = {"delivery": 1, "attempt": 1, "started_at": at, "ended_at": at, "outcome": "retry"}
            job = {
                **JOB,
                "id": f"0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b{number:04x}",
                "last_error": text,
                "progress": {"done": 1.0, "note": text},
                "history": [{**ended, "failure": failure}],
                "log": [{"at": at, "level": "info", "text": text, "delivery": 1}],
                "headers": {"h": text},
            }
            assert await _unpack(given, _parcel(job, number=number))
            [told] = (await given.done("/jobs/get", {"ids": [job["id"]]}))["jobs"]

            for name in ("last_error", "progress", "history", "log", "headers"):
                assert told[name] == job[name], (name, text)


async def test_the_moved_mark_is_that_of_the_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db?synchronous=normal"
    async with an_app(url) as given:
        await given.done("/move/set", {"moved": AWAY})
    async with an_app(url) as again:
        assert await again.client.store.moved() == Moved(**AWAY)
