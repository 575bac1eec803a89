import logging
from contextlib import AsyncExitStack
from typing import Any, ClassVar

import pytest

from tests.http.dashboard.given_dashboard import GivenDashboard
from tests.http.dashboard.watching import PATHS, a_watched_dashboard, change_in, watch
from tests.http.given_app import LIMITED
from tests.http.streams import Stream
from windlass.core.looks import AuditEntry
from windlass.http.dashboard import app as dashboard_app
from windlass.http.dashboard.live import MOST_LOOKS
from windlass.http.dashboard.pages.audit import Audit, AuditAsked
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.view import Facts
from windlass.http.streaming import STILL_HERE

BROWSERS = 50
INTERVALS = 30


async def test_many_browsers_cost_the_store_as_much_as_one() -> None:
    assert await _cost(BROWSERS) == await _cost(1)


async def test_the_overview_costs_one_query_each_interval_and_few_others_in_between() -> None:
    async with a_watched_dashboard() as given, given.watch("/"):
        await given.interval()
        told = [await given.interval() for _ in range(INTERVALS)]

    assert all(calls["GetStats"] == 1 for calls in told)
    others = sum(calls.total() for calls in told) - INTERVALS
    assert others <= INTERVALS // 3, told


async def test_what_several_pages_need_is_asked_for_once_in_an_interval() -> None:
    async with a_watched_dashboard() as given, AsyncExitStack() as browsers:
        job = await given.client.enqueue("mine")
        paths = [path.replace("{id:uuid}", job.id) for path in PATHS]
        seen = [await browsers.enter_async_context(given.watch(path)) for path in paths]
        await given.interval()

        assert [each.told()[0]["regions"].keys() >= {"counts"} for each in seen] == [True] * len(paths)
        assert (await given.interval())["GetStats"] == 1


async def test_who_may_see_less_shares_nothing_with_who_may_see_all() -> None:
    async with a_watched_dashboard() as given, given.watch("/") as all_of_it, given.watch("/", who=LIMITED) as limited:
        await given.client.enqueue("mine")
        await given.client.enqueue("theirs")
        await given.interval()

        assert "theirs" in str(all_of_it.told())
        assert "theirs" not in str(limited.told())


async def test_a_change_is_told_once_and_alone() -> None:
    async with a_watched_dashboard() as given, given.watch("/audit") as browser:
        await given.interval()
        first = browser.told()
        await given.interval()
        nothing = browser.parts.qsize()
        await _note(given, "alice")
        await given.interval()
        second = browser.told()

    assert [*first[0]["regions"]] == ["counts", "entries"]
    assert nothing == 0
    assert [[*each["regions"]] for each in second] == [["entries"]]
    assert "alice" in second[0]["regions"]["entries"]


async def test_all_who_watch_a_page_are_told_and_see_what_they_asked_for() -> None:
    async with a_watched_dashboard() as given, AsyncExitStack() as browsers:
        short = [await browsers.enter_async_context(given.watch("/audit?limit=1")) for _ in range(3)]
        long = await browsers.enter_async_context(given.watch("/audit"))
        await _note(given, "alice")
        await _note(given, "bob")
        await given.interval()
        entries = [each.told()[-1]["regions"]["entries"] for each in (*short, long)]

    assert [("alice" in each, "bob" in each) for each in entries] == [(False, True)] * 3 + [(True, True)]


async def test_a_page_on_which_nothing_changes_tells_that_its_stream_lives() -> None:
    async with a_watched_dashboard() as given, given.watch("/audit") as browser:
        await given.interval()
        browser.told()
        await given.clock.let_pass(STILL_HERE)

        assert [browser.parts.get_nowait() for _ in range(browser.parts.qsize())] == [b": still here\n\n"]


async def test_of_more_pages_than_an_interval_looks_at_each_has_its_turn() -> None:
    pages = 2 * MOST_LOOKS + 3
    async with a_watched_dashboard() as given, AsyncExitStack() as browsers:
        seen = [await browsers.enter_async_context(given.watch(f"/audit?limit={n + 1}")) for n in range(pages)]
        await given.clock.let_pass(0.1)
        assert sum(bool(each.told()) for each in seen) == MOST_LOOKS

        for turns in range(1, 4):
            calls = await given.interval()
            assert (calls["ListAudit"], calls["GetStats"]) == (MOST_LOOKS, 1), turns
        told = [each.told() for each in seen]
        await _note(given, "alice")
        for _ in range(3):
            await given.interval()

        assert sum(map(bool, told)) == pages - MOST_LOOKS
        assert all("alice" in str(each.told()) for each in seen)


async def test_a_store_that_is_away_is_told_of_once_and_so_is_its_return() -> None:
    async with a_watched_dashboard() as given, given.watch("/audit") as browser:
        await given.interval()
        browser.told()
        given.store.away = True
        for _ in range(3):
            await given.interval()
        away = browser.told()
        given.store.away = False
        await _note(given, "alice")
        await given.interval()
        back = browser.told()

    assert away == [{"away": "the store is away: start it again"}]
    assert [("away" in each, "alice" in each["regions"]["entries"]) for each in back] == [(False, True)]


async def test_a_browser_that_comes_while_the_store_is_away_is_told_so_and_sees_the_page_when_it_is_back() -> None:
    async with a_watched_dashboard() as given:
        given.store.away = True
        async with given.watch("/audit") as browser:
            await given.interval()
            away = browser.told()
            given.store.away = False
            await given.interval()

            assert [[*each] for each in away] == [["away"]]
            assert [[*each["regions"]] for each in browser.told()] == [["counts", "entries"]]


async def test_a_slow_reader_is_told_how_it_is_now_and_not_how_it_came_to_be() -> None:
    async with a_watched_dashboard() as given, watch(given, Stream(), "/audit") as slow:
        for name in ("alice", "bob", "carol"):
            await given.interval()
            await _note(given, name)
        await given.interval()
        told = [await slow.parts.get() for _ in range(3)]

        assert told[0] == b": ok\n\n"
        # one was on its way when the rest came about
        first, last = map(change_in, told[1:])
        assert "alice" not in str(first)
        assert all(name in str(last) for name in ("alice", "bob", "carol"))
        assert slow.parts.empty()


async def test_a_page_with_a_mistake_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dashboard_app, "VIEWS", (Audit, _Mistaken))
    async with a_watched_dashboard() as given, given.watch("/mistaken") as one, given.watch("/audit") as other:
        with caplog.at_level(logging.CRITICAL, "windlass.http"):
            await given.interval()
        await _note(given, "alice")
        await given.interval()

        assert [[*each] for each in one.told()] == [["away"]]
        assert "alice" in str(other.told()[-1])


async def test_nothing_is_looked_at_when_nobody_watches_and_again_when_somebody_does() -> None:
    async with a_watched_dashboard() as given:
        async with given.watch("/audit"):
            await given.interval()
        # the look that comes after it finds nobody
        await given.interval()
        quiet, timers = await given.interval(), given.clock.waiting
        async with given.watch("/audit") as browser:
            again = await given.interval()
            told = browser.told()

    assert (quiet.total(), timers, again["ListAudit"] > 0, len(told)) == (0, 0, True, 1)


async def test_a_stop_ends_every_stream_and_takes_no_more() -> None:
    async with a_watched_dashboard() as given, given.watch("/audit") as browser:
        await given.interval()
        given.app.stop_waiting()
        await given.clock.let_pass(0)
        async with given.watch("/audit") as late:
            await given.clock.let_pass(0)

            assert browser.ended.is_set()
            assert late.status == 503


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "nonsense=1"])
async def test_a_stream_of_a_page_that_cannot_be_is_refused(query: str) -> None:
    async with a_watched_dashboard() as given, given.watch(f"/audit?{query}") as browser:
        await given.clock.let_pass(0)

        assert browser.status == 422


class _Mistaken(Audit):
    name: ClassVar = "mistaken"
    path: ClassVar = "/mistaken"

    async def look(self, seen: Seen, asked: AuditAsked) -> Facts:
        del seen
        return {"entries": "abc"[asked.limit]}


async def _cost(browsers: int) -> Any:  # noqa: ANN401 - a count by name
    """Return what the store is asked while so many browsers watch each page."""
    async with a_watched_dashboard() as given, AsyncExitStack() as watching:
        job = await given.client.enqueue("mine")
        for path in PATHS:
            for _ in range(browsers):
                await watching.enter_async_context(given.watch(path.replace("{id:uuid}", job.id)))
        # those that came first were looked at before the others came
        await given.interval()
        before = given.store.calls.copy()
        for _ in range(6):
            await given.interval()
        return given.store.calls - before


async def _note(given: GivenDashboard, actor: str) -> None:
    await given.client.store.write_audit([AuditEntry(given.client.clock.now(), actor, "pause", "mail", {})])


def test_all_pages_are_looked_at_within_one_interval() -> None:
    assert len(PATHS) <= MOST_LOOKS
