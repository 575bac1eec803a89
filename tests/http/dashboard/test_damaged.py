"""Damaged records on the pages of the dashboard, in a SQLite file."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import windlass
from tests.http.dashboard.given_dashboard import GivenDashboard
from windlass import NewJob
from windlass.api.roles import Role
from windlass.cli.schedule_shown import document
from windlass.http.auth import Identity
from windlass.http.shown import shown, shown_schedule

FAR = 2**62
Write = Callable[[str], None]


@pytest.fixture
async def given(tmp_path: Path) -> AsyncIterator[GivenDashboard]:
    async with windlass.connect(f"sqlite:///{tmp_path}/jobs.db") as client:
        yield GivenDashboard(client)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def run(statement: str) -> None:
        with closing(sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)) as connection:
            connection.execute(statement)

    return run


async def test_a_damaged_job_is_marked_in_the_lists_and_explained_on_its_page(
    given: GivenDashboard, write: Write
) -> None:
    jobs = await given.client.enqueue_many([NewJob("mail", kind="send") for _ in range(3)])
    write(f"update windlass_job set created_at = {FAR}, run_at = {FAR} where id = '{jobs[0].id}'")
    write(f"update windlass_job set kind = cast(x'ff' as text) where id = '{jobs[1].id}'")

    rows = {row.attributes["data-key"]: row for row in (await given.page("/jobs")).all("tr", data_key=None)}
    page = await given.page(f"/jobs/{jobs[0].id}")
    await given.client.claim_many(["mail"], limit=3)
    dead = await given.page("/dead")

    marks = {job_id: [mark.text for mark in row.all("span", class_="bad-text")] for job_id, row in rows.items()}
    assert marks == {jobs[0].id: ["damaged"], jobs[1].id: ["damaged"], jobs[2].id: []}
    [warning] = page.all("p", class_="job-damage")
    assert "The stored record is damaged." in warning.text
    assert f"created_at is out of range: {FAR}" in warning.text
    assert not any(time.attributes["datetime"].startswith("1970") for time in page.all("time"))
    facts = {row.one("dt").text: row.one("dd").text for row in page.all("dl", class_="facts")[0].all("div")}
    assert [len(facts[name]) for name in ("Made", "Run at")] == [1, 1], "each is one dash"
    assert "its stored record is damaged" in page.one(data_region="reasons").text.lower()
    assert "DamagedRecord" in dead.one("table").text


async def test_no_field_is_shown_where_the_header_that_names_the_secret_ones_cannot_be_read(
    given: GivenDashboard, write: Write
) -> None:
    job = await given.client.enqueue("mail", {"pin": 4711}, headers={"windlass-secret": "pin"})
    await given.client.schedules.put("daily", 3600, NewJob("mail", {"pin": 4711}, headers={"windlass-secret": "pin"}))
    for table in ("windlass_job", "windlass_schedule"):
        write(f"update {table} set headers = '['")

    page = await given.page(f"/jobs/{job.id}")
    viewer = Identity("vera", frozenset({Role.VIEW}))
    [found] = await given.client.store.get([job.id])
    _, [schedule] = await given.client.store.schedules()

    assert found is not None
    assert found.payload == schedule.payload == b'{"pin":4711}'
    assert "4711" not in page.text
    assert msgspec.to_builtins(shown(found, viewer, as_bytes=True))["payload_base64"] == "eyJwaW4iOiIqKioifQ=="
    assert document(schedule)["payload"] == {"pin": "***"}
    assert shown_schedule(schedule, viewer).payload == b'{"pin":"***"}'


async def test_a_damaged_schedule_is_a_state_of_its_own_that_can_only_be_removed(
    given: GivenDashboard, write: Write
) -> None:
    for name in ("sound", "damaged"):
        await given.client.schedules.put(name, 3600, NewJob("mail"))
    page = await given.page("/schedules")
    assert "damaged" not in [each.text for each in page.all("span", class_="state")]

    write("update windlass_schedule set headers = '[' where id = 'damaged'")
    page = await given.page("/schedules?id=damaged")

    row = page.one("tr", id="schedule-damaged")
    assert row.one("span", class_="state").text == "damaged"
    assert row.all("button") == []
    assert row.all("time") == []
    detail = page.one("tr", class_="detail")
    assert "headers is not JSON. It makes no jobs: put it again, or remove it." in detail.text
    assert [button.text for button in detail.all("button")] == ["Remove"]
    assert page.one("tr", id="schedule-sound").all("button")
