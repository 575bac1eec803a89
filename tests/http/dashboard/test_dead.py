"""Dead letters: groups by error, the jobs of one, and what is done to many at once."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.client.given_dead import SECOND, a_dead_job, died
from tests.http.dashboard.given_dashboard import Element, a_dashboard
from tests.http.given_app import LIMITED
from windlass import NewJob
from windlass.api.roles import Role
from windlass.client.error_groups import ErrorGroups
from windlass.http.dashboard.bulk_change import all_of, group_of
from windlass.http.dashboard.pages import dead
from windlass.http.dashboard.seen import Kept
from windlass.testing.clock import START, FakeClock

TEXT = "host # said no"
OPENED = f"/dead?error={quote(TEXT)}"


async def test_dead_jobs_are_shown_by_error_the_most_common_first() -> None:
    async with a_dashboard() as given:
        await died(given.client, ["Boom: one", "Boom: two", "host 7 said no"], queue="mail", kind="send")
        await died(given.client, ["Boom: three"], queue="other")

        page = await given.page("/dead")

    assert [[cell.text for cell in row.all("td")][:4] for row in page.one("tbody").all("tr")] == [
        ["3", "Boom three", "(raw) , send", "mail , other"],
        ["1", f"{TEXT} host 7 said no", "send", "mail"],
    ]
    assert page.one(class_="summed").one("strong").text == "4 dead jobs"
    assert [each.text for each in page.one("select").all("option")] == ["All queues", "mail (3)", "other (1)"]


async def test_it_says_what_would_be_there_when_nothing_is_dead() -> None:
    async with a_dashboard() as given:
        nothing = await given.page("/dead")
        of_a_queue = await given.page("/dead?queue=mail")
        of_an_error = await given.page("/dead?error=Boom")

    assert "Nothing is dead A job whose attempts are used up" in nothing.one(class_="empty").text
    assert "Nothing is dead here" in of_a_queue.one(class_="empty").text
    assert "None of them is here" in of_an_error.one(class_="empty").text
    assert not [page for page in (nothing, of_a_queue, of_an_error) if page.all("button", data_call=None)]


async def test_a_queue_and_a_kind_narrow_it_and_stand_in_every_link() -> None:
    async with a_dashboard() as given:
        await died(given.client, ["Boom: 1", "Boom: 2"], queue="mail", kind="send")
        await died(given.client, ["Boom: 3"], queue="mail", kind="fetch")
        await died(given.client, ["Boom: 4"], queue="other", kind="send")

        page = await given.page("/dead?queue=mail&kind=send")

    assert page.one("tbody").one("td", data_head="Jobs").text == "2"
    assert page.one("a", class_="row").attributes["href"] == "/dead?queue=mail&kind=send&error=Boom"
    assert _button(page, "retry")["data-confirm"].startswith("Retry 2 dead jobs in the queue mail of the kind send?")


async def test_one_group_shows_its_jobs_the_newest_first_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "ROWS", 2)
    async with a_dashboard() as given:
        ids = await died(given.client, [*(f"host {n} said no" for n in range(5)), "Boom: 1"], queue="mail")

        pages = [await given.page(OPENED)]
        while older := pages[-1].all("a", rel="next"):
            pages.append(await given.page(older[0].attributes["href"]))

    shown = [row.attributes["data-key"] for page in pages for row in page.all("tr") if "data-key" in row.attributes]
    assert shown == ids[4::-1]
    assert [cell.text for cell in pages[0].one("tbody").all("td")][1:5] == ["host 4 said no", "(raw)", "mail", "1 of 3"]
    assert pages[0].all("a", class_="row")[0].attributes["href"] == f"/jobs/{ids[4]}"


async def test_of_the_jobs_of_a_group_the_last_to_die_comes_first() -> None:
    clock = FakeClock()
    async with a_dashboard(clock=clock) as given:
        await given.client.enqueue_many([NewJob("mail") for _ in range(3)])
        first, second, third = await given.client.claim_many("mail", limit=3)
        for claim in (second, third, first):
            clock.advance(1)
            await given.client.dead_letter(claim, f"Boom: {claim.job.seq}")

        every, of_one = await given.page("/dead"), await given.page("/dead?error=Boom")

    shown = [row.attributes["data-key"] for row in of_one.all("tr") if "data-key" in row.attributes]
    assert shown == [claim.job.id for claim in (first, third, second)]
    assert f"Boom {first.job.seq}" in every.one("tbody").text


@pytest.mark.parametrize("action", ["retry", "delete"])
async def test_all_jobs_of_an_error_are_changed_at_once_and_no_others(action: str) -> None:
    async with a_dashboard() as given:
        await died(given.client, ["Boom: 1", "Boom: 2", "Bo: 3", "Boomer: 4", "no Boom: 5"])
        button = _button((await given.page("/dead")).one("tr", data_key="Boom"), action)

        told = await given.done(button["data-call"], json.loads(button["data-body"]), who=Role.OPERATE)
        page = await given.page("/dead")
        [entry] = await given.client.store.audit(limit=10)

    assert told == {"count": 2}
    assert not page.all("tr", data_key="Boom")
    assert len(page.one("tbody").all("tr")) == 3
    assert (entry.actor, entry.action, entry.target) == ("operate", action, "2 jobs")
    assert (entry.detail["error_type"], entry.detail["state"]) == ("Boom", "dead")


async def test_jobs_that_die_after_the_page_was_seen_are_not_meant() -> None:
    async with a_dashboard() as given:
        await died(given.client, ["Boom: 1"])
        button = _button((await given.page("/dead")).one(class_="summed"), "delete")
        [later] = await died(given.client, ["Boom: 2"])

        await given.done(button["data-call"], json.loads(button["data-body"]))
        left = await given.client.dead_jobs()

    assert [job.id for job in left] == [later]


async def test_a_group_that_no_filter_finds_is_changed_by_its_ids_which_are_asked_for() -> None:
    async with a_dashboard() as given:
        ids = await died(given.client, ["host 1 said no", "host 2 said no", "host said no"])
        listed = _button((await given.page("/dead")).one("tr", data_key=TEXT), "retry")
        asked = await given.page(listed["data-asks"])
        button = _button(asked, "retry")

        told = await given.done(button["data-call"], json.loads(button["data-body"]))

    assert "data-body" not in listed
    assert listed["data-confirm"].startswith('Retry 2 dead jobs with the error "host # said no"?')
    assert json.loads(button["data-body"]) == {"ids": [ids[1], ids[0]]}
    assert told == {"outcomes": ["done", "done"]}


async def test_what_changes_many_tells_the_count_asks_first_can_be_undone_and_is_in_the_audit() -> None:
    async with a_dashboard() as given:
        await died(given.client, ["Boom: 1", "Boom: 2", "host 1 said no"])
        pages = [await given.page(path) for path in ("/dead", "/dead?error=Boom", OPENED)]

    buttons = [button.attributes for page in pages for button in page.all("button", data_bulk=None)]
    assert len(buttons) == 2 * (3 + 1 + 1)
    for button in buttons:
        assert "data-undo" in button
        assert any(
            button["aria-label"].endswith(f" {count}") or f" {count} " in button["aria-label"]
            for count in ("3 dead jobs", "2 dead jobs", "1 dead job")
        )
        assert button["data-confirm"].startswith(f"{button['aria-label']}? ")
        assert button["data-confirm"].endswith("It is written into the audit.")
    deletes = [button.attributes for page in pages for button in page.all("button", data_call="/jobs/delete")]
    assert all("data-confirm" in button for button in deletes)


async def test_who_may_only_view_is_offered_no_change() -> None:
    async with a_dashboard() as given:
        await died(given.client, ["Boom: 1"])
        pages = [await given.page(path, who=Role.VIEW) for path in ("/dead", "/dead?error=Boom")]

    assert [len(page.one("tbody").all("tr")) for page in pages] == [1, 1]
    assert not [button for page in pages for button in page.all("button", data_call=None)]


async def test_who_is_limited_to_a_queue_sees_and_changes_the_dead_of_that_one() -> None:
    async with a_dashboard() as given:
        await died(given.client, ["Boom: mine"], queue="mine")
        await died(given.client, ["Boom: theirs"], queue="theirs", kind="hidden")
        page = await given.page("/dead", who=LIMITED)
        button = _button(page.one(class_="summed"), "delete")

        told = await given.done(button["data-call"], json.loads(button["data-body"]), who=LIMITED)
        left = await given.client.dead_jobs()

    assert page.one("strong").text == "1 dead job"
    assert "theirs" not in page.text
    assert "hidden" not in page.text
    assert (told, [job.queue for job in left]) == ({"count": 1}, ["theirs"])


async def test_a_part_of_very_many_is_grouped_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "MOST", 3)
    async with a_dashboard() as given:
        await died(given.client, [*(f"Boom: {n}" for n in range(4)), "host 1 said no"], kind="send")
        whole, of_kind, opened = [await given.page(f"/dead{query}") for query in ("", "?kind=send", "?error=Boom")]
        text = await given.page(OPENED)

    assert whole.one(class_="summed").one("p").text == "5 dead jobs , grouped are the newest 3"
    assert (
        _button(whole.one("tr", data_key="Boom"), "retry")["aria-label"]
        == 'Retry at least 2 dead jobs with the error "Boom"'
    )
    assert "There may be many more: all of them are meant." in _button(opened, "retry")["data-confirm"]
    assert "many more" not in _button(whole.one(class_="summed"), "retry")["data-confirm"]
    assert _button(of_kind.one(class_="summed"), "retry")["aria-label"] == "Retry at least 3 dead jobs of the kind send"
    assert _button(opened, "retry")["aria-label"] == 'Retry at least 3 dead jobs with the error "Boom"'
    assert _button(text, "retry")["aria-label"].endswith(
        '1 dead job with the error "host # said no", those that were looked at'
    )


async def test_a_look_is_kept_while_jobs_die_and_not_once_one_was_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    within = Kept.within

    async def watched(kept: Kept, seconds: float, key: Any, ask: Any) -> Any:  # noqa: ANN401 - as it is
        async def told() -> Any:  # noqa: ANN401 - as it is
            asked.append(key)
            return await ask()

        return await within(kept, seconds, key, told)

    monkeypatch.setattr(Kept, "within", watched)
    async with a_dashboard() as given:
        [first] = await died(given.client, ["Boom: 1"])
        await given.page("/dead")
        await died(given.client, ["Boom: 2"])
        await given.page("/dead")
        kept = len(asked)
        await given.done("/jobs/retry", {"ids": [first]})
        await given.page("/dead")

    assert (kept, len(asked)) == (1, 2)


@pytest.mark.parametrize("query", ["queue=a%20b", "kind=%00", "before=-1", "before=x", f"error={'x' * 201}", "who=me"])
async def test_a_query_that_makes_no_sense_is_refused(query: str) -> None:
    async with a_dashboard() as given:
        assert (await given.get(f"/dead?{query}")).status == 422


def test_a_change_of_many_reaches_up_to_the_newest_that_was_seen() -> None:
    [group] = ErrorGroups([a_dead_job(2, "Boom: 2"), a_dead_job(1, "Boom: 1")]).in_order()
    given = {"queue": "q", "kind": None}

    of_group = group_of(given, group, is_whole=False, with_ids=False)
    every = all_of(given, 7, is_exact=True, newest_at=START)

    until = (START + 2 * SECOND).isoformat().replace("+", ".000001+")
    assert of_group.body == {"filter": {"state": "dead", "queue": "q", "error_type": "Boom", "until": until}}
    assert of_group.meant == 'at least 2 dead jobs with the error "Boom" in the queue q'
    assert every.meant == "7 dead jobs in the queue q"


def _button(within: Element, action: str) -> dict[str, str]:
    return within.all("button", data_bulk=action)[0].attributes
