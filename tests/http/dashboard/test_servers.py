from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.http.dashboard.given_dashboard import Element, GivenDashboard, a_dashboard
from tests.http.given_app import LIMITED
from windlass.api.roles import Role
from windlass.client import look_back
from windlass.core.job import Claim, Note, Progress
from windlass.core.requests import ClaimRequest
from windlass.engine.heart import new_record
from windlass.http.dashboard.pages import servers
from windlass.http.dashboard.pages.servers import held_by
from windlass.testing import FakeClock

MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def given(clock: FakeClock) -> AsyncGenerator[GivenDashboard]:
    async with a_dashboard(clock=clock) as given:
        yield given


async def beat(given: GivenDashboard, server_id: str, details: Mapping[str, str] | None = None, **fields: Any) -> None:  # noqa: ANN401 - those of a record
    record = new_record(server_id, clock=given.client.clock)
    fields = {"queues": ("mail",), **fields}
    await given.client.store.beat(replace(record, details=details or {"slots": "3", "memory": "3145728"}, **fields))


async def claim(given: GivenDashboard, worker: str | None, count: int = 1, *, queue: str = "mail") -> list[Claim]:
    for _ in range(count):
        await given.client.enqueue(queue, b"", kind="send")
    return (await given.client.store.claim(ClaimRequest([queue], count, 60 * MINUTE, None, worker))).jobs


def panel(page: Element, server_id: str) -> Element:
    return page.one("article", id=f"server-{server_id}")


def runs(found: Element) -> list[str]:
    return [link.attributes["href"].rpartition("/")[2] for link in found.one(class_="runs").all("a", class_="row")]


async def test_a_server_that_stops_is_shown_as_stopping(given: GivenDashboard) -> None:
    await beat(given, "box#1", {"slots": "3", "stopping": "yes"}, running=2)

    page = await given.page("/servers", who=Role.VIEW)

    assert "box stopping" in panel(page, "box#1").text
    assert "0 servers live, 1 stopping: it claims no more, and waits for what still runs." in page.text


async def test_each_server_tells_where_it_is_and_how_much_it_does(given: GivenDashboard) -> None:
    await beat(given, "box#1", host="box.example", pid=7, version="1.2.3", kinds=("send", "sort"))
    await claim(given, "box#1", 2)

    found = panel(await given.page("/servers", who=Role.VIEW), "box#1")

    assert [part in found.text for part in ("box live box.example pid 7 1.2.3", "3.0 MiB", "2 of 3")] == [True] * 3
    meter = found.one("meter").attributes
    assert (meter["value"], meter["max"]) == ("2", "3")
    assert "1 queue mail" in found.text
    assert "2 kinds send, sort" in found.text


async def test_what_a_server_runs_is_there_with_since_when_and_how_far_it_is(
    given: GivenDashboard, clock: FakeClock
) -> None:
    await beat(given, "box#1")
    [first] = await claim(given, "box#1")
    clock.advance(5)
    [second] = await claim(given, "box#1")
    await given.client.store.note([Note(second.job.id, second.token, progress=Progress(30, 120, "rows"))])
    await beat(given, "other#2")

    page = await given.page("/servers")

    box = panel(page, "box#1")
    assert runs(box) == [first.job.id, second.job.id]
    assert "send mail 25%" in box.all("li")[1].text
    assert box.all("li")[1].one(title="30/120 (25%) rows").text == "25%"
    assert box.all("li")[0].one("time").attributes["datetime"].startswith(first.job.claimed_at.isoformat()[:19])  # type: ignore[union-attr]
    assert "Nothing now" in panel(page, "other#2").text


async def test_a_server_is_live_then_silent_and_then_folded_away(given: GivenDashboard, clock: FakeClock) -> None:
    await beat(given, "box#1")
    pages: list[Element] = []
    for silence in (timedelta(), MINUTE, 9 * MINUTE):
        clock.advance(silence)
        pages.append(await given.page("/servers"))

    assert [panel(page, "box#1").one(class_="state").text for page in pages] == ["live", "silent", "gone"]
    assert [len(page.all("details", class_="gone")) for page in pages] == [0, 0, 1]
    assert "No server is live" in pages[-1].one(class_="empty").text
    assert len(pages[-1].one("details", class_="gone").all("article", id="server-box#1")) == 1


async def test_jobs_that_did_not_end_at_their_timeout_are_said_loudly(given: GivenDashboard) -> None:
    [held] = await claim(given, "box#1")
    await beat(given, "box#1", {"stuck": f"{held.job.id}, javascript:alert(1), {held.job.id}"})

    loud = panel(await given.page("/servers"), "box#1").one(class_="loud")

    assert "2 jobs did not end at their timeout and hold 3 slots" in loud.text
    # whatever a record says, only an id of a job becomes a link
    assert [link.attributes["href"] for link in loud.all("a")] == [f"/jobs/{held.job.id}"]


async def test_a_process_that_serves_is_said_to_do_so(given: GivenDashboard) -> None:
    await beat(given, "serve#1", {"serves": "http"}, queues=())
    await beat(given, "thin#2", {"served": "yes", "scheduling": "off"})

    page = await given.page("/servers")

    serving = panel(page, "serve#1")
    assert "Serves this store over http" in serving.text
    assert serving.all(class_="runs") == []
    assert "Works through a process that serves the store. Makes no jobs of schedules." in panel(page, "thin#2").text


async def test_jobs_of_somebody_who_is_no_server_are_there_too(given: GivenDashboard) -> None:
    await beat(given, "box#1")
    await claim(given, "box#1")
    [named], [nameless] = await claim(given, "a-script"), await claim(given, None)

    page = await given.page("/servers")

    others = {each.one("h3").text: runs(each) for each in page.one("section").all("article")}
    assert others == {"somebody without a name": [nameless.job.id], "a-script": [named.job.id]}


async def test_who_is_limited_sees_the_servers_of_their_queues_alone(given: GivenDashboard) -> None:
    await beat(given, "ours#1", queues=("mine",))
    await beat(given, "mixed#2", queues=("mine", "mail"))
    [ours] = await claim(given, "mixed#2", queue="mine")
    await claim(given, "mixed#2", queue="mail")

    page = await given.page("/servers", who=LIMITED)
    await given.client.store.leave("ours#1")
    none = await given.page("/servers", who=LIMITED)

    assert [each.attributes["id"] for each in page.all("article", id=None)] == ["server-ours#1"]
    assert runs(page.one("section")) == [ours.job.id]
    assert "none that works on others too" in none.one(class_="empty").text


async def test_some_are_found_by_text(given: GivenDashboard) -> None:
    for number in range(102):
        await beat(given, f"box{number:03}#1", host=f"host-{number}")

    everything = await given.page("/servers")
    found = await given.page("/servers?text=HOST-77")
    none = await given.page("/servers?text=nowhere")

    assert len(everything.all("article")) == 100
    assert "These are the first 100" in everything.one(class_="more").text
    assert [each.attributes["id"] for each in found.all("article")] == ["server-box077#1"]
    assert "There are 102 servers" in none.one(class_="empty").text


async def test_nothing_on_the_page_hangs_on_the_time_of_day(given: GivenDashboard, clock: FakeClock) -> None:
    await beat(given, "box#1")
    await claim(given, "box#1")

    first = await given.get("/servers")
    clock.advance(30)

    assert (await given.get("/servers")).body == first.body


async def test_it_says_how_a_server_is_started_when_there_is_none(given: GivenDashboard) -> None:
    assert "windlass worker tasks:app" in (await given.page("/servers")).one(class_="empty").text


async def test_jobs_are_held_longest_first_by_each(given: GivenDashboard, clock: FakeClock) -> None:
    old = await claim(given, "b")
    clock.advance(1)
    new, other = await claim(given, "b"), await claim(given, "a")

    held = held_by([claim.job for claim in (*new, *other, *old)])

    assert {worker: [job.id for job in jobs] for worker, jobs in held.items()} == {
        "a": [other[0].job.id],
        "b": [old[0].job.id, new[0].job.id],
    }


async def test_a_record_that_lies_breaks_nothing(given: GivenDashboard) -> None:
    many = tuple(f"kind-{number}" for number in range(5_000))
    lies = {"slots": "0", "memory": "lots", "serves": "<script>" * 1_000}
    await beat(given, "box#1", lies, host="h" * 100_000, version="<b>" * 9_000, kinds=many, running=-1)
    await beat(given, "odd#2", {"slots": "9" * 15}, kinds=many)

    reply = await given.get("/servers")

    assert (reply.status, len(reply.body) < 30_000) == (200, True)
    assert b"<script><script>" not in reply.body
    assert b"and 4,900 more" in reply.body


async def test_running_jobs_that_carry_much_are_read_some_at_a_time(
    given: GivenDashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_back, "FIRST", 2)
    monkeypatch.setattr(look_back, "AT_ONCE", 300)
    await beat(given, "box#1")
    for _ in range(5):
        await given.client.enqueue("mail", b"x" * 100)
    held = (await given.client.store.claim(ClaimRequest(["mail"], 5, 60 * MINUTE, None, "box#1"))).jobs
    newest = given.client.store.newest
    read: list[int] = []

    async def watched(*args: Any, limit: int, **kwargs: Any) -> Any:  # noqa: ANN401 - as the store's
        read.append(limit)
        return await newest(*args, limit=limit, **kwargs)

    monkeypatch.setattr(given.client.store, "newest", watched)
    page = await given.page("/servers")

    assert sorted(runs(panel(page, "box#1"))) == sorted(claim.job.id for claim in held)
    assert read == [2, 3]
    assert "These are the newest" not in page.text


async def test_of_more_running_jobs_than_are_read_the_page_says_how_many_it_shows(
    given: GivenDashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "MOST_JOBS", 3)
    await beat(given, "box#1")
    await claim(given, "box#1", 5)

    page = await given.page("/servers")

    assert "These are the newest 3 jobs that run: all are in the list of jobs" in page.text
