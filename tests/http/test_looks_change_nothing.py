import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.http.asgi import Sender, ask
from tests.http.given_app import GivenApp, an_app, secret_of, until
from tests.http.given_tokens import bearer
from tests.http.test_table_of_routes import OTHERS
from windlass.api.operations import LOG, NEWS, OPERATIONS, Operation
from windlass.api.roles import Role

QUERIES = {
    "minutes": "since=2026-01-01T00:00:00Z&until=2027-01-01T00:00:00Z",
    "timings": "since=2026-01-01T00:00:00Z&until=2027-01-01T00:00:00Z",
    "wait": "timeout=0",
    "news": "topic=ends&topic=queue:a",
}
"""What is asked where something must be."""
_STREAMS = tuple(each.path.rpartition("/")[2] for each in (NEWS, LOG))


async def test_a_look_changes_nothing(tmp_path: Path) -> None:
    database = tmp_path / "jobs.db"
    async with an_app(f"sqlite:///{database}") as given:
        job = await _some_of_everything(given)
        before = _dump(database)
        for method, path, name in _looks(job):
            reply = await _look(given, method, f"{path}?{QUERIES.get(name, '')}")
            assert reply in ((200,) if method == "GET" else (200, 405)), (method, path)

        assert _dump(database) == before


async def test_the_same_look_sees_a_change(tmp_path: Path) -> None:
    database = tmp_path / "jobs.db"
    async with an_app(f"sqlite:///{database}") as given:
        await _some_of_everything(given)
        before = _dump(database)
        await given.done("/queues/resume", {"queue": "b"})

        assert _dump(database) != before


async def _some_of_everything(given: GivenApp) -> str:
    """Write something of each kind; return the id of a job."""
    claims = await given.claimed("a", "a", "b")
    await given.done("/queues/pause", {"queue": "b"})
    await given.done("/schedules/put", {"id": "s", "rule": 60, "job": {"queue": "a"}})
    await given.done("/jobs/cancel", {"ids": [claims[0]["job"]["id"]]})
    # a lease that has run out, a job that has come due, and a record past its time: looks leave them alone
    await given.done("/claims/renew", {"claims": [_held(claims[1])], "lease": 0})
    await given.done("/jobs", {"jobs": [{"queue": "a", "run_at": "2020-01-01T00:00:00Z"}]})
    await given.done("/kv/write", {"key": "k", "value": "v"})
    await given.done("/locks/take", {"name": "l", "holder": "h", "ttl": 60})
    return str(claims[0]["job"]["id"])


def _held(claim: dict[str, dict[str, str]]) -> dict[str, object]:
    return {"id": claim["job"]["id"], "token": claim["token"]}


def _looks(job: str) -> list[tuple[str, str, str]]:
    operations: list[Operation[Any, Any]] = [each for each in OPERATIONS if each.method == "GET"]
    paths = {(each.path.replace("{id}", job), each.name) for each in operations}
    paths |= {(path, "") for method, path in OTHERS if method in ("GET", "HEAD")}
    return [(method, path, name) for path, name in sorted(paths) for method in ("GET", "HEAD")]


async def _look(given: GivenApp, method: str, target: str) -> int:
    sender = Sender()
    asking = asyncio.ensure_future(
        ask(given.api, method, target, headers=[bearer(secret_of(Role.ADMIN))], sender=sender)
    )
    if method == "GET" and target.partition("?")[0].endswith(_STREAMS):
        await until(lambda: bool(given.api.shared.streams))
        sender.hang_up()
    return (await asking).status


def _dump(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return list(connection.iterdump())
