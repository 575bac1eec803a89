import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.http.dashboard.given_dashboard import Element, GivenDashboard, a_dashboard
from tests.http.given_app import LIMITED
from windlass.api.roles import Role
from windlass.codec import Encoded
from windlass.core.job import NewJob
from windlass.engine.heart import new_record
from windlass.testing import FakeClock

HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 3, 27, 12, tzinfo=UTC))


@pytest.fixture
async def given(clock: FakeClock) -> AsyncGenerator[GivenDashboard]:
    async with a_dashboard(clock=clock) as given:
        yield given


async def put(given: GivenDashboard, name: str, rule: str | timedelta = HOUR, *, queue: str = "mail") -> None:
    await given.client.schedules.put(name, rule, NewJob(queue, kind="send"))


async def declare(given: GivenDashboard, name: str, *, by: str | None) -> None:
    """Let a schedule be one that code declares: of the server `by`, which works two queues, or of none that is live."""
    await put(given, name, queue="mine")
    [found] = (await given.client.store.schedules([name])).schedules
    await given.client.store.write_schedule(replace(found, declared=True), expected=found.revision)
    if by is not None:
        record = new_record(by, clock=given.client.clock)
        await given.client.store.beat(replace(record, queues=("mine", "mail"), schedules=(name,)))


def row(page: Element, name: str) -> Element:
    return page.one("tr", id=f"schedule-{name}")


def said(page: Element, name: str) -> dict[str, str]:
    return {cell.attributes["data-head"]: cell.text for cell in row(page, name).all("td", data_head=None)}


def times(found: Element, form: str) -> list[str]:
    return [each.attributes["datetime"] for each in found.all("time", data_as=form)]


def called(found: Element) -> list[str]:
    return [button.attributes["data-call"] for button in found.all("button", data_call=None)]


async def test_each_schedule_tells_its_rule_its_state_and_its_next_runs(given: GivenDashboard) -> None:
    await given.client.schedules.put(
        "nightly", "30 2 * * *", NewJob("reports", kind="report"), timezone="Europe/Berlin"
    )
    await put(given, "poll", timedelta(minutes=90))

    page = await given.page("/schedules", who=Role.VIEW)

    nightly, poll = said(page, "nightly"), said(page, "poll")
    assert (nightly["Rule"], nightly["State"]) == ("30 2 * * * Europe/Berlin", "active")
    assert nightly["Makes"] == "report in reports"
    assert poll["Rule"] == "every 5400s every 1 h 30 min"
    # over the change of the clocks: half past two in Berlin is another time in UTC
    shown = times(row(page, "nightly"), "short")
    assert shown == ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]


async def test_runs_that_passed_while_no_server_was_there_are_not_to_come(
    given: GivenDashboard, clock: FakeClock
) -> None:
    await put(given, "poll", timedelta(seconds=1))
    clock.advance(HOUR)

    page = await given.page("/schedules")

    assert times(row(page, "poll"), "short") == ["2026-03-27T12:00:01Z"]
    assert "No live server makes jobs of schedules" in page.one(class_="warning").text


async def test_who_may_operate_pauses_resumes_and_runs_and_who_views_does_not(given: GivenDashboard) -> None:
    await put(given, "poll")

    active = row(await given.page("/schedules", who=Role.OPERATE), "poll")
    await given.done("/schedules/pause", {"id": "poll"})
    paused = row(await given.page("/schedules", who=Role.OPERATE), "poll")
    viewed = await given.page("/schedules?id=poll", who=Role.VIEW)
    await given.done("/schedules/resume", {"id": "poll"})
    viewed_active = await given.page("/schedules?id=poll", who=Role.VIEW)

    assert called(active) == ["/schedules/run", "/schedules/pause"]
    assert called(paused) == ["/schedules/run", "/schedules/resume"]
    assert json.loads(paused.all("button")[1].attributes["data-body"]) == {"id": "poll"}
    assert "none while it is paused" in paused.text
    assert called(viewed) == called(viewed_active) == []


async def test_a_job_that_was_made_is_linked(given: GivenDashboard) -> None:
    await put(given, "poll")
    job_id = (await given.done("/schedules/run", {"id": "poll"}))["job_id"]

    page = await given.page("/schedules?id=poll")

    links = {link.text: link.attributes["href"] for link in page.all("a")}
    assert links["by hand"] == links["its last job"] == f"/jobs/{job_id}"
    assert links["Its jobs"] == "/jobs?schedule_id=poll"


async def test_what_no_live_server_declares_is_orphaned_and_can_be_removed(given: GivenDashboard) -> None:
    await declare(given, "old", by=None)
    await declare(given, "new", by="box#1")
    await put(given, "own")

    old = await given.page("/schedules?id=old")
    new, own = [await given.page(f"/schedules?id={name}") for name in ("new", "own")]

    assert (said(old, "old")["State"], said(old, "new")["State"]) == ("orphaned", "active")
    assert "no live server does" in old.one("tr", class_="detail").text
    removable = [called(page.one("tr", class_="detail")) for page in (old, new, own)]
    assert removable == [["/schedules/remove"], [], ["/schedules/remove"]]
    button = own.one("tr", class_="detail").one("button", data_call=None)
    assert {"data-confirm", "data-undo"} <= button.attributes.keys()


async def test_what_a_silent_server_declared_is_orphaned(given: GivenDashboard, clock: FakeClock) -> None:
    await declare(given, "new", by="box#1")
    clock.advance(60)

    page = await given.page("/schedules")

    assert said(page, "new")["State"] == "orphaned"
    assert len(page.all(class_="warning")) == 1


@pytest.mark.parametrize("details, idle", [({}, 0), ({"scheduling": "off"}, 1), ({"served": "yes"}, 1)])
async def test_it_says_when_no_server_makes_jobs_of_schedules(
    given: GivenDashboard, details: dict[str, str], idle: int
) -> None:
    await put(given, "poll")
    await given.client.store.beat(replace(new_record("box#1", clock=given.client.clock), details=details))

    assert len((await given.page("/schedules")).all(class_="warning")) == idle


async def test_who_is_limited_sees_the_schedules_of_their_queues_as_they_stand(given: GivenDashboard) -> None:
    # the server that declares it is not theirs to see, since it works on another queue too
    await declare(given, "new", by="box#1")
    await put(given, "foreign")

    page = await given.page("/schedules?id=foreign", who=LIMITED)

    assert said(page, "new")["State"] == "active"
    assert page.all("tr", id="schedule-foreign") == []
    assert "There is no schedule foreign here" in page.one(class_="warning").text


async def test_what_is_secret_in_a_payload_or_a_header_is_not_shown_to_anybody(given: GivenDashboard) -> None:
    payload = {"team": "sales", "api_key": "canary-1"}
    headers = {"authorization": "canary-2", "trace": "abc"}
    await given.client.schedules.put("x", HOUR, NewJob("mail", payload, headers=headers))

    page = await given.page("/schedules?id=x", who=Role.ADMIN)

    detail = page.one("tr", class_="detail")
    assert '"team": "sales"' in detail.one("pre").text
    assert "trace abc" in detail.one("details", data_key="headers").text
    assert "canary" not in page.text


async def test_a_payload_that_is_no_text_or_huge_or_deep_is_shown_as_far_as_it_can_be(given: GivenDashboard) -> None:
    deep = Encoded(b'{"token":"canary","deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "json")
    for name, payload in {"bytes": b"\xff\x00<b>", "huge": "x" * 100_000, "deep": deep}.items():
        await given.client.schedules.put(name, HOUR, NewJob("mail", payload))

    shown = {name: (await given.page(f"/schedules?id={name}")).one("details") for name in ("bytes", "huge", "deep")}

    assert shown["bytes"].one("pre").text == "\\xff\\x00<b>"
    assert len(shown["huge"].one("pre").text) == 20_000
    assert "This is its beginning." in shown["huge"].text
    # nothing can look through it for what is secret
    assert shown["deep"].one("pre").text == '"***"'


async def test_some_are_found_by_text_and_state_and_the_rest_is_told_of(given: GivenDashboard) -> None:
    for number in range(202):
        await put(given, f"s{number:03}", queue="Other" if number == 201 else "mail")
    await given.client.schedules.pause("s201")

    everything = await given.page("/schedules?id=s201")
    by_text = await given.page("/schedules?text=oTHER")
    by_state = await given.page("/schedules?state=paused")
    none = await given.page("/schedules?text=nowhere")

    assert len(everything.all("a", class_="row")) == 201
    # what is opened is there, whatever is left out
    assert everything.all("a", class_="row")[0].text == "s201"
    assert "These are 200 of 202" in everything.one(class_="more").text
    assert [link.text for link in by_text.all("a", class_="row")] == ["s201"]
    assert [link.text for link in by_state.all("a", class_="row")] == ["s201"]
    assert "There are 202 schedules" in none.one(class_="empty").text
    counts = [link.text for link in everything.one(class_="states").all("a")]
    assert counts == ["All 202", "active 201", "paused 1", "orphaned 0", "over 0"]


async def test_a_rule_or_a_zone_of_another_release_harms_nobody(given: GivenDashboard) -> None:
    await put(given, "strange")
    [found] = (await given.client.store.schedules(["strange"])).schedules
    end = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    for name, changed in {
        "rule": {"rule": "each full moon"},
        "zone": {"timezone": "Mars/Crater"},
        "end": {"timezone": "Asia/Tokyo", "rule": "0 0 * * *", "next_run_at": end},
    }.items():
        await given.client.store.write_schedule(replace(found, id=name, **changed), expected=None)  # type: ignore[arg-type]

    pages = {name: await given.page(f"/schedules?id={name}") for name in ("rule", "zone", "end")}

    assert said(pages["rule"], "rule")["Rule"] == "each full moon a rule that this release cannot read"
    assert said(pages["zone"], "zone")["Rule"] == "every 3600s Mars/Crater, a zone that is not known here"
    assert len(pages["end"].one(class_="times").all("li")) == 1


async def test_nothing_on_the_page_hangs_on_the_time_of_day(given: GivenDashboard, clock: FakeClock) -> None:
    await put(given, "poll")

    first = await given.get("/schedules?id=poll")
    clock.advance(50)

    assert (await given.get("/schedules?id=poll")).body == first.body


async def test_it_says_how_a_schedule_is_made_when_there_is_none(given: GivenDashboard) -> None:
    empty = (await given.page("/schedules")).one(class_="empty").text

    assert "@app.every(" in empty
    assert "windlass schedules put" in empty


@pytest.mark.parametrize("query", ["state=asleep", "id=" + "x" * 201, "text=" + "x" * 201, "sort=id"])
async def test_what_cannot_be_asked_for_is_refused(given: GivenDashboard, query: str) -> None:
    assert (await given.get(f"/schedules?{query}")).status == 422
