import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.http.given_app import an_app
from tests.http.hostile_calls import CORPUS, hostile_calls
from windlass.api.operations import OPERATIONS


@pytest.mark.parametrize("text", CORPUS, ids=range(len(CORPUS)))
async def test_hostile_text_in_any_place_is_only_text(text: str, tmp_path: Path) -> None:
    database, asked = tmp_path / "jobs.db", Counter[str]()
    async with an_app(f"sqlite:///{database}?synchronous=normal") as given:
        [canary, other] = await given.enqueued("canary", "canary")
        job, schema = await given.client.get(canary), _schema(database)
        for method, path, body, where in hostile_calls(text, other):
            reply = await (given.get(path) if method == "GET" else given.post(path, body))
            assert reply.status in (200, 400, 403, 404, 409, 422), (where, reply.body)
            assert reply.header("x-injected") is None
            if where.startswith("set_moved"):
                await given.done("/move/set", {"moved": None})
            asked[where.partition(" ")[0]] += 1

        assert _schema(database) == schema
        assert await given.client.get(canary) == job
        assert (await given.client.stats("canary")).pending == 2
    assert asked.total() > len(OPERATIONS) * 2
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
    assert {*asked} >= {operation.name for operation in OPERATIONS} - without_text


def _schema(database: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("select type, name, tbl_name, sql from sqlite_master order by 1, 2").fetchall()
