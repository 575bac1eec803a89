import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.http.given_app import LIMITED, GivenApp, an_app, secret_of
from tests.http.given_tokens import a_token
from tests.http.hostile_calls import hostile_calls
from windlass.api.operations import OPERATIONS
from windlass.api.roles import Role
from windlass.core.commands import WriteSchedule
from windlass.core.errors import IdConflict

MARK = "their-secret"
SERVER: dict[str, Any] = {
    "id": "theirs#1",
    "name": MARK,
    "host": MARK,
    "pid": 1,
    "version": "1",
    "started_at": "2020-01-01T00:00:00Z",
    "seen_at": "2020-01-01T00:00:00Z",
    "queues": ["theirs"],
}


@pytest.mark.parametrize("text", ["theirs", "their-schedule", "theirs#1", "%"])
async def test_no_call_tells_or_changes_anything_of_another_queue(text: str, tmp_path: Path) -> None:
    database = tmp_path / "jobs.db"
    async with an_app(f"sqlite:///{database}?synchronous=normal") as given:
        waiting, running = await _theirs(given)
        before, [counted] = _theirs_of(database), await given.client.store.stats("theirs")
        called: set[str] = set()
        for job in (waiting, running):
            # where a text is not asked for, the plain one is a job's id
            for method, path, body, where in hostile_calls(text, job, ids=job):
                reply = await (given.get(path, who=LIMITED) if method == "GET" else given.post(path, body, who=LIMITED))
                assert reply.status < 500, where
                assert MARK.encode() not in reply.body.replace(text.encode(), b""), (where, reply.body)
                called.add(where.partition(" ")[0])

        assert _theirs_of(database) >= before
        assert await given.client.store.stats("theirs") == [counted]
    without_text = {
        "about",
        "servers",
        "ended_servers",
        "check",
        "promote",
        "place",
        "why",
        "log",
        "moved",
        "timed_keys",
        "waiting",
    }
    assert called >= {operation.name for operation in OPERATIONS} - without_text


async def test_what_is_asked_for_as_a_whole_tells_nothing_of_another_queue(tmp_path: Path) -> None:
    async with an_app(f"sqlite:///{tmp_path}/jobs.db?synchronous=normal") as given:
        await _theirs(given)
        for operation in OPERATIONS:
            if operation.method == "GET" and "{id}" not in operation.path and operation.name != "news":
                timed = operation.name in ("minutes", "timings")
                query = "?since=2020-01-01T00:00:00Z&until=2999-01-01T00:00:00Z" if timed else ""
                reply = await given.get(operation.path.removeprefix("/api/v1") + query, who=LIMITED)
                assert reply.status in (200, 403)
                assert b"their" not in reply.body, operation.name


async def test_a_schedule_of_another_queue_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_app() as given:
        await _theirs(given)
        store: Any = given.client.store
        before = (await store.schedules()).schedules
        written: list[Any] = []
        do = store.do

        async def noted(command: Any, *, request_id: str | None = None) -> Any:  # noqa: ANN401 - as the store has it
            if isinstance(command, WriteSchedule):
                written.append(command.schedule)
            return await do(command, request_id=request_id)

        monkeypatch.setattr(store, "do", noted)
        put = {"id": "their-schedule", "rule": 5, "job": {"queue": "mine"}}
        refused = await given.post("/schedules/put", put, who=LIMITED)
        own = await given.post("/schedules/put", {**put, "id": "mine"}, who=LIMITED)
        put_back = await given.post("/schedules/write", {"schedule": {**own.document, "id": put["id"]}}, who=LIMITED)

        assert (refused.status, refused.document["error"]) == (403, "not_allowed")
        assert (put_back.status, put_back.document["error"]) == (403, "not_allowed")
        assert MARK.encode() not in refused.body + put_back.body
        assert [schedule.id for schedule in written] == ["mine"]
        assert [each for each in (await store.schedules()).schedules if each.id != "mine"] == before


@pytest.mark.parametrize("where", ["theirs", "mine"])
async def test_an_id_that_is_taken_is_told_alike_wherever_its_job_is(where: str) -> None:
    async with an_app() as given:
        told = await given.done("/jobs", {"jobs": [{"queue": where, "kind": "other", "tenant": MARK, "payload": MARK}]})
        wanted = {"queue": "mine", "kind": "mine", "id": told["jobs"][0]["id"]}
        refused = await given.post("/jobs", {"jobs": [{"queue": "mine"}, wanted]}, who=LIMITED)
        batches = await given.done("/jobs/batches", {"batches": [[{"queue": "mine"}], [wanted]]}, who=LIMITED)

        assert refused.status == 409
        assert refused.document == {
            "error": "id_conflict",
            "message": str(IdConflict(wanted["id"], "mine", "mine", None)),
            "facts": {"job_id": wanted["id"], "queue": "mine", "kind": "mine", "tenant": None},
        }
        assert batches["batches"][0]["jobs"][0]["created"]
        assert batches["batches"][1]["problem"] == refused.document
        assert (await given.client.stats("mine")).pending == 1 + (where == "mine")


async def test_no_caller_is_given_the_claims_of_another_by_the_name_of_a_request() -> None:
    """Whoever mounts the app gives the names of callers, and they may have any character."""
    async with an_app() as given:
        for name in ("a", "a|b", "a%7Cb"):
            given.tokens.tokens.append(a_token(secret_of(name.replace("|", "-")), name=name, roles=[Role.WORK]))
        await given.enqueued("mine", "mine", "mine")
        asked = {"queues": ["mine"]}
        told = [
            await given.done("/claims", asked, who=who.replace("|", "-"), request=request)
            for who, request in (("a", "b|c"), ("a|b", "c"), ("a%7Cb", "c"))
        ]

    assert len({each["claims"][0]["job"]["id"] for each in told}) == 3


async def _theirs(given: GivenApp) -> list[str]:
    """Put something of everything into another queue; return the ids of a job that waits and one that runs."""
    job = {"queue": "theirs", "kind": MARK, "payload": MARK, "headers": {"h": MARK}, "tenant": MARK}
    told = await given.done("/jobs", {"jobs": [{**job, "priority": 1}, {**job, "unique": "their-key"}]})
    [claim] = (await given.done("/claims", {"queues": ["theirs"], "worker": MARK}))["claims"]
    held = {"id": claim["job"]["id"], "token": claim["token"]}
    await given.done("/claims/note", {"notes": [{**held, "lines": [{"level": "info", "text": MARK}]}]})
    await given.done("/schedules/put", {"id": "their-schedule", "rule": 60, "job": job})
    await given.done("/servers/beat", {"server": SERVER})
    timing = {
        "minute": "2026-01-01T00:00:00Z",
        "queue": "theirs",
        "kind": MARK,
        "what": "ran",
        "range": 0,
        "attempts": 1,
    }
    await given.done("/timings", {"timings": [timing]})
    await given.done("/kv/write", {"key": "their-key", "value": MARK})
    await given.done("/locks/take", {"name": "theirs", "holder": MARK, "ttl": 3600})
    return [each["id"] for each in reversed(told["jobs"])]


def _theirs_of(database: Path) -> set[str]:
    """Return every row that tells of them; the callers may write more of these, as a schedule of their own."""
    with closing(sqlite3.connect(database)) as connection:
        return {line for line in connection.iterdump() if "their" in line}
