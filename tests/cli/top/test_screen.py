import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from rich.text import Text
from textual.pilot import Pilot
from textual.widgets import Input, Static

import windlass
from windlass import Client, JobFilter, JobId, NewJob, State, StoreUnavailable
from windlass.cli.top.ask import Ask, Keys
from windlass.cli.top.job_page import JobPage
from windlass.cli.top.pane import Pane
from windlass.cli.top.screen import PANES, Terms, Top
from windlass.core.looks import ServerRecord
from windlass.testing import FakeClock

HOSTILE = "[bold red]boom[/] \x1b[2J 名\u202e"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with windlass.connect("memory://", clock=FakeClock(), max_attempts=1) as client:
        yield client


def view(client: Client, **more: Any) -> Top:  # noqa: ANN401 - any of its terms
    # it looks again when it is told to, and by itself not before the test is over
    return Top(client, Terms("memory://", "ann@box", 3600, **more))


def seen_by(pilot: Pilot[None]) -> Top:
    assert isinstance(pilot.app, Top)
    return pilot.app


async def until(pilot: Pilot[None], so: Callable[[], bool]) -> None:
    app = seen_by(pilot)
    async with asyncio.timeout(20):
        while not so() and app.error is None:  # noqa: ASYNC110 - what it waits for is the screen, which tells nobody
            await asyncio.sleep(0)
    assert app.error is None, app.error


def _more_than(app: Top, looks: int) -> bool:
    return app.looks > looks


async def look(pilot: Pilot[None]) -> None:
    app = seen_by(pilot)
    # one may be under way that began before
    for _ in range(2):
        seen = app.looks
        app.look_again()
        await until(pilot, partial(_more_than, app, seen))


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await look(pilot)


async def change(pilot: Pilot[None], key: str, answer: str = "y") -> None:
    app = seen_by(pilot)
    done = app.changes
    await pilot.press(key)
    await until(pilot, lambda: isinstance(app.screen, Ask))
    await pilot.press(answer)
    await until(pilot, lambda: not isinstance(app.screen, Ask) and app.changes == done + (answer == "y"))
    await look(pilot)


async def dead(client: Client, count: int, error: str = "no such user", kind: str = "send") -> list[JobId]:
    done = await client.enqueue_many([NewJob("email", kind=kind) for _ in range(count)])
    for claim in await client.claim_many("email", limit=count):
        await client.nack(claim, error)
    return [one.id for one in done]


def rows(app: Top, name: str) -> list[str]:
    pane = app.screen_stack[0].query_one(f"#{name}", Pane)
    return ["".join(cell.plain for cell in pane.get_row_at(at)) for at in range(pane.row_count)]


def text(app: Top, where: str) -> str:
    content = app.screen.query_one(where, Static).content
    return content.plain if isinstance(content, Text) else str(content)


async def audited(client: Client) -> list[tuple[str, str, str]]:
    return [(entry.actor, entry.action, entry.target) for entry in await client.store.audit(limit=10)]


async def test_a_queue_is_paused_and_resumed_after_a_question(client: Client) -> None:
    await client.enqueue("email")
    app = view(client)
    async with app.run_test(size=(80, 24)) as pilot:
        await look(pilot)
        await change(pilot, "p", "n")
        refused = (await client.stats("email")).paused
        await change(pilot, "p")

        assert (refused, (await client.stats("email")).paused) == (False, True)
        assert "email (paused)" in rows(app, "queues")[0]
        await change(pilot, "p")

    assert not (await client.stats("email")).paused
    assert await audited(client) == [("ann@box", "resume", "email"), ("ann@box", "pause", "email")]


async def test_all_jobs_of_an_error_are_retried_and_one_is_deleted(client: Client) -> None:
    refused = await dead(client, 3, "ConnectionError: refused")
    [other] = await dead(client, 1, "ValueError: bad", "resize")
    app = view(client)
    async with app.run_test(size=(80, 24)) as pilot:
        await look(pilot)
        await press(pilot, "4")
        assert [row.split()[0] for row in rows(app, "dead")] == ["3", "1"]
        await press(pilot, "down", "enter")
        assert app.wanted == "state:dead queue:email kind:resize error:ValueError"
        assert len(rows(app, "jobs")) == 1
        await press(pilot, "escape", "4", "up")
        await change(pilot, "r")
        await until(pilot, lambda: len(rows(app, "dead")) == 1)
        await change(pilot, "d")

    assert {job.id for job in await client.jobs(JobFilter(state=State.PENDING))} == set(refused)
    assert await client.get(other) is None
    assert await audited(client) == [("ann@box", "delete", other), ("ann@box", "retry", "3 jobs")]


async def test_the_page_of_a_job_shows_its_log_and_why_and_cancels_it(client: Client) -> None:
    payload = {"password": "hunter2", "note": "hunter2"}
    job_id = (await client.enqueue("email", payload, kind="send", headers={"windlass-secret": "note"})).id
    app = view(client)
    async with app.run_test(size=(80, 24)) as pilot:
        await look(pilot)
        await press(pilot, "2", "enter")
        await until(pilot, lambda: isinstance(app.screen, JobPage) and app.screen.job is not None)
        before = text(app, "#job")
        await change(pilot, "c")
        after = text(app, "#job")
        await change(pilot, "r")
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)

    assert "no server is live" in before
    assert "hunter2" not in before
    assert "it was cancelled" in after
    job = await client.get(job_id)
    assert job is not None
    assert job.state is State.PENDING
    assert [action for _, action, _ in await audited(client)] == ["retry", "cancel"]


async def test_jobs_are_filtered_and_a_filter_that_means_nothing_is_refused(client: Client) -> None:
    await dead(client, 2)
    await client.enqueue("reports", kind="make")
    app = view(client)
    async with app.run_test(size=(80, 24)) as pilot:
        await look(pilot)
        everything = len(rows(app, "jobs"))
        await pilot.press("slash")
        box = app.query_one("#filter", Input)
        box.value = "state:dedd"
        await pilot.press("enter")
        await until(pilot, lambda: "state is one of" in app.told)
        assert app.wanted == ""
        box.value = "state:dead"
        await press(pilot, "enter")
        assert (app.wanted, len(rows(app, "jobs"))) == ("state:dead", 2)
        await press(pilot, "escape")
        assert len(rows(app, "jobs")) == everything == 3
        await press(pilot, "1", "down", "enter")
        assert [row.split()[1] for row in rows(app, "jobs")] == ["make"]


async def test_all_tables_are_seen_where_there_is_room_and_one_below_the_queues_elsewhere(client: Client) -> None:
    app = view(client)
    await client.enqueue("email", kind="send")
    async with app.run_test(size=(80, 24)) as pilot:
        await look(pilot)

        def seen() -> list[str]:
            return [name for name in PANES if app.query_one(f"#{name}", Pane).display]

        assert seen() == ["queues", "jobs"]
        await press(pilot, "tab", "tab")
        assert seen() == ["queues", "servers"]
        await pilot.resize_terminal(200, 50)
        await until(pilot, lambda: len(seen()) == len(PANES))
        await look(pilot)
        assert seen() == list(PANES)
        wide = rows(app, "queues")
        await pilot.resize_terminal(40, 10)
        await look(pilot)
        assert len(wide[0]) > len(rows(app, "queues")[0])


async def test_what_others_wrote_is_shown_as_it_is_and_obeyed_by_nothing(client: Client) -> None:
    now = client.clock.now()
    await dead(client, 1, HOSTILE)
    await client.store.beat(
        ServerRecord("x#1", HOSTILE, HOSTILE, 1, HOSTILE, now, now, ("email",), ("send",), details={"slots": HOSTILE})
    )
    app = view(client, wanted="[red]x")
    async with app.run_test(size=(200, 50)) as pilot:
        await look(pilot)
        await press(pilot, "escape")
        shown = "".join(rows(app, "dead") + rows(app, "servers"))
        await press(pilot, "4")
        await change(pilot, "d", "n")
        await press(pilot, "2", "enter")
        await until(pilot, lambda: isinstance(app.screen, JobPage) and app.screen.job is not None)
        page = text(app, "#job")

    for told in (shown, page):
        assert "[bold red]boom" in told
        assert "\\x1b[2J" in told
        assert "\x1b" not in told
        assert "\u202e" not in told


async def test_a_store_that_goes_away_is_told_of_and_comes_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: object = None) -> None:
        raise StoreUnavailable("the disk is [red]gone", retryable=True)

    await client.enqueue("email")
    app = view(client)
    async with app.run_test(size=(80, 24)) as pilot:
        await look(pilot)
        with monkeypatch.context() as broken:
            broken.setattr(client.store, "stats", away)
            await look(pilot)
            told = text(app, "#trouble")
            kept = rows(app, "queues")
        await look(pilot)

        assert "the disk is [red]gone" in told
        assert (len(kept), text(app, "#trouble")) == (1, "")


async def test_where_others_own_the_store_the_keys_say_why_they_do_nothing(client: Client) -> None:
    await client.enqueue("email")
    app = view(client, changes=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await look(pilot)
        await pilot.press("p")
        await pilot.pause()

        assert len(app.screen_stack) == 1
        assert "belongs to one process" in app.told
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Keys))


async def test_the_row_under_the_cursor_stays_there_while_others_come(client: Client) -> None:
    clock = client.clock
    assert isinstance(clock, FakeClock)
    await client.enqueue("mail")
    app = view(client, dead_after=timedelta(seconds=60))
    async with app.run_test(size=(80, 24)) as pilot:
        await look(pilot)
        for name in ("a", "b", "c"):
            await client.enqueue(name)
        clock.advance(1)
        await look(pilot)

        assert app.query_one("#queues", Pane).chosen == "mail"
        assert rows(app, "queues")[0].split()[-2:] != ["-", "-"]
