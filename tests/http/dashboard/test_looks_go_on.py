"""A look that hangs or fails, and readers who change meanwhile."""

import asyncio
import logging
from typing import Any, ClassVar

import pytest

from tests.http.dashboard.watching import a_watched_dashboard
from tests.http.given_app import LIMITED, secret_of
from tests.http.given_tokens import a_token
from windlass.api.roles import Role
from windlass.http.dashboard import app as dashboard_app
from windlass.http.dashboard.live import LATE, PATIENCE
from windlass.http.dashboard.pages.audit import Audit, AuditAsked
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.view import Facts
from windlass.http.streaming import STILL_HERE


async def test_a_look_that_hangs_is_told_of_and_stops_no_other_page() -> None:
    async def hangs(**_: Any) -> None:  # noqa: ANN401 - whatever is asked
        await asyncio.Event().wait()

    async with a_watched_dashboard() as given, given.watch("/audit") as one, given.watch("/servers") as other:
        vars(given.store)["audit"] = hangs
        await given.clock.let_pass(LATE)
        late = one.told(), other.told()
        await given.clock.let_pass(PATIENCE - LATE)
        told, others = one.told(), other.told()
        await given.clock.let_pass(PATIENCE - 1)
        again = one.told()
        del vars(given.store)["audit"]
        await given.clock.let_pass(PATIENCE)

        # those who wait behind it see what is old as well
        assert late == ([{"away": "the store has not answered for 3 seconds"}],) * 2
        assert told == [{"away": "the store has not answered for 10 seconds: it is asked again"}]
        assert again == []
        assert [("away" in each, "servers" in each["regions"]) for each in others] == [(False, True)]
        assert "entries" in one.told()[-1]["regions"]


async def test_nothing_is_left_of_a_look_that_hangs_when_the_app_closes() -> None:
    async def hangs(*_: Any) -> None:  # noqa: ANN401 - whatever is asked
        await asyncio.Event().wait()

    before = asyncio.all_tasks()
    async with a_watched_dashboard() as given:
        vars(given.store)["stats"] = hangs
        async with given.watch("/audit"):
            await given.interval()
            given.app.stop_waiting()
            await given.app.close()
            left = asyncio.all_tasks() - before

    assert [task for task in left if not task.done()] == []


async def test_a_mistake_of_a_page_is_logged_once_until_it_has_been_made_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dashboard_app, "VIEWS", (_Mistaken,))
    monkeypatch.setattr(_Mistaken, "right", False)
    async with a_watched_dashboard() as given, given.watch("/audit"):
        for _ in range(3):
            await given.interval()
        first = len(caplog.records)
        _Mistaken.right = True
        await given.interval()
        _Mistaken.right = False
        for _ in range(3):
            await given.interval()

    assert (first, len(caplog.records)) == (1, 2)
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


@pytest.mark.parametrize("queues", [None, ["theirs"], []], ids=["all", "others", "none"])
async def test_a_stream_ends_when_its_reader_is_limited_to_other_queues(queues: list[str] | None) -> None:
    async with a_watched_dashboard() as given, given.watch("/", who=LIMITED) as browser:
        await given.interval()
        given.tokens.tokens[-1] = a_token(secret_of(LIMITED), name=LIMITED, roles=list(Role), queues=queues)
        await given.clock.let_pass(STILL_HERE)

        assert browser.ended.is_set()


async def test_a_stream_ends_when_a_role_of_its_reader_is_taken_away_and_goes_on_when_nothing_is() -> None:
    async with a_watched_dashboard() as given, given.watch("/audit", who=Role.OPERATE) as browser:
        given.tokens.tokens.reverse()
        await given.clock.let_pass(STILL_HERE)
        goes_on = not browser.ended.is_set()
        given.tokens.tokens = [a_token(secret_of(Role.OPERATE), name=Role.OPERATE, roles=[Role.VIEW])]
        await given.client.enqueue("mine")
        await given.clock.let_pass(STILL_HERE)

        assert (goes_on, browser.ended.is_set()) == (True, True)


class _Mistaken(Audit):
    right: ClassVar = True

    async def look(self, seen: Seen, asked: AuditAsked) -> Facts:
        if self.right:
            return await super().look(seen, asked)
        return {"entries": "abc"[asked.limit]}
