"""The list of jobs."""

import json
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.client.given_dead import a_dead_job, died
from tests.http.dashboard.given_dashboard import Element, GivenDashboard, a_dashboard
from tests.http.given_app import LIMITED
from windlass import NewJob
from windlass.api.roles import Role
from windlass.client import look_back
from windlass.core.filters import JobFilter
from windlass.core.job import Job, Note, Progress
from windlass.core.states import State
from windlass.http.dashboard import job_search
from windlass.http.dashboard.job_bulk import bulk_of
from windlass.http.dashboard.pages import jobs
from windlass.testing import FakeClock
from windlass.testing.clock import START
from windlass.testing.conformance.given import a_job


def _rows(page: Element) -> list[list[str]]:
    return [[cell.text for cell in row.all("td")] for row in page.all("tr", data_key=None)]


def _ids(page: Element) -> list[str]:
    return [row.attributes["data-key"] for row in page.all("tr", data_key=None)]


async def _ids_at(given: GivenDashboard, path: str, *, who: str = Role.VIEW) -> list[str]:
    return _ids(await given.page(path, who=who))


async def test_jobs_are_shown_the_newest_first_with_where_each_stands() -> None:
    async with a_dashboard(max_attempts=3) as given:
        client = given.client
        [dead] = await died(client, ["Boom: first line\nsecond"], queue="mail", kind="send")
        await client.enqueue("mail", {}, tenant="acme")
        running = await client.claim("mail")
        assert running is not None
        await client.store.note([Note(running.job.id, running.token, Progress(30, 100, "rows"))])
        later = (await client.enqueue("mail", delay=3600)).id

        page = await given.page("/jobs", who=Role.VIEW)

    assert _ids(page) == [later, running.job.id, dead]
    assert [row[1:5] + row[6:] for row in _rows(page)] == [
        ["raw", "mail", "scheduled", "0/3", "", ""],
        ["raw", "mail", "running", "1/3", "acme", "30/100 rows"],
        ["send", "mail", "dead", "1/3", "", "Boom: first line"],
    ]
    assert [row.one("time").attributes["data-as"] for row in page.one("tbody").all("tr")] == ["age", "length", "age"]
    assert page.one("progress").attributes["value"] == "30"
    assert page.one("tbody").all("a", class_="row")[2].attributes["href"] == f"/jobs/{dead}"


async def test_the_url_says_which_jobs_are_shown() -> None:
    async with a_dashboard(clock=(clock := FakeClock())) as given:
        client = given.client
        [mail] = await died(client, ["Boom: 1"], queue="mail", kind="send")
        parent = (await client.enqueue("other", kind="send", tenant="acme")).id
        clock.advance(60)
        child = a_job("other", schedule_id="nightly")._replace(parent_id=parent)
        await client.store.enqueue([child])

        expected = {
            "": [child.id, parent, mail],
            "state=dead": [mail],
            "queue=other": [child.id, parent],
            "queue=other&kind=send": [parent],
            "kind=&tenant=acme&text=": [parent],
            f"parent_id={parent}": [child.id],
            "schedule_id=nightly": [child.id],
            "error_type=Boom": [mail],
            "since=2026-01-01T12:00:30": [child.id],
            f"until={(START + timedelta(seconds=30)).isoformat().replace('+', '%2B')}": [parent, mail],
            f"text={mail[:20]}": [mail],
            "text=acme": [parent],
            "state=pending&text=send": [parent],
        }
        found = {query: await _ids_at(given, f"/jobs?{query}") for query in expected}

    assert found == expected


async def test_the_states_have_their_counts_where_these_are_known() -> None:
    async with a_dashboard() as given:
        await died(given.client, ["Boom"], queue="mail")
        await given.client.enqueue_many([NewJob("mail"), NewJob("other"), NewJob("other")])

        everything, of_one, of_a_kind = [
            (await given.page(f"/jobs?{query}")).one(class_="tabs") for query in ("", "queue=mail&state=dead", "kind=k")
        ]

    said = [tab.text for tab in everything.all("a")]
    assert said == ["All 4", "scheduled 0", "pending 3", "running 0", "succeeded 0", "dead 1", "cancelled 0"]
    assert of_one.one("a", aria_current="page").text == "dead 1"
    assert of_one.all("a")[2].attributes["href"] == "/jobs?state=pending&queue=mail"
    assert of_one.all("a")[2].text == "pending 1"
    assert [tab.text for tab in of_a_kind.all("a")] == ["All", *State]


async def test_older_ones_follow_page_by_page_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "ON_A_PAGE", 2)
    async with a_dashboard() as given:
        made = [each.id for each in await given.client.enqueue_many([NewJob("mail") for _ in range(5)])]
        page = await given.page("/jobs?queue=mail")
        found = [_ids(page)]
        assert not [each for each in page.all("a") if each.text == "To the newest"]
        while older := page.all("a", rel="next"):
            page = await given.page(older[0].attributes["href"])
            found.append(_ids(page))

    assert found == [[made[4], made[3]], [made[2], made[1]], [made[0]]]
    [back] = [each for each in page.all("a") if each.text == "To the newest"]
    assert back.attributes["href"] == "/jobs?queue=mail"
    assert page.one("a", data_newer=None).attributes["href"] == "/jobs?queue=mail"


async def test_a_look_that_takes_too_long_says_how_far_it_went(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "ENOUGH", -1.0)
    monkeypatch.setattr(jobs, "SLACK", 1)
    monkeypatch.setattr(look_back, "LOOKED_AT", 1)
    async with a_dashboard(clock=(clock := FakeClock())) as given:
        for _ in range(6):
            await given.client.enqueue("mail")
            clock.advance(60)
        until = (START + timedelta(minutes=2)).isoformat().replace("+00:00", "Z")

        page = await given.page(f"/jobs?until={until}")
        on, jump = page.one(class_="found").all("a")
        there = await given.page(jump.attributes["href"])

    assert _ids(page) == []
    assert page.one(class_="found").text.startswith("Looked back to 2")
    assert page.one(class_="found").one("time").attributes["datetime"] == (
        START + timedelta(minutes=5)
    ).isoformat().replace("+00:00", "Z")
    assert (on.text, _before(on), jump.text, _before(jump)) == ("Look on", "6", "Jump to that time", "3")
    assert len(_ids(there)) == 1


def _before(link: Element) -> str:
    return parse_qs(urlsplit(link.attributes["href"]).query)["before"][0]


async def test_what_cannot_be_read_is_said_beside_its_field_and_nothing_is_shown() -> None:
    async with a_dashboard() as given:
        await given.client.enqueue("mail")

        page = await given.page("/jobs?queue=a+b&since=soon&state=done&before=x&parent_id=7")

    assert page.one("input", id="queue").attributes["aria-describedby"] == "queue-problem"
    assert page.one("p", id="queue-problem").text.startswith("queue 'a b' has the character")
    assert page.one("input", id="queue").attributes["value"] == "a b"
    assert page.one("p", id="since-problem").text == "a time is written as 2026-01-31T09:00, not 'soon'"
    assert "a job id is a UUID" in page.one("p", id="parent_id-problem").text
    assert [each.text.split()[0] for each in page.all("p", role="alert") if each.text] == ["state", "before"]
    assert (_rows(page), page.all(class_="empty")) == ([], [])


async def test_a_search_says_what_was_looked_at() -> None:
    async with a_dashboard() as given:
        admin, viewer, plain = [
            (await given.page(path, who=who)).one(id="searched").text
            for path, who in (
                ("/jobs?text=x&state=dead", Role.ADMIN),
                ("/jobs?text=x", Role.VIEW),
                ("/jobs", Role.VIEW),
            )
        ]

    assert "among the newest 10,000, in payloads (without what is secret) among the newest 10,000." in admin
    assert "in payloads (without what is secret) among the newest 2,000." in viewer
    assert plain == ""


async def test_what_is_found_for_one_reader_is_kept_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_search, "MASKED", 1)
    async with a_dashboard() as given:
        [old, new] = [each.id for each in await given.client.enqueue_many([NewJob("mine", b"acme") for _ in range(2)])]

        found = [await _ids_at(given, "/jobs?text=acme", who=who) for who in (Role.ADMIN, Role.VIEW)]

    assert found == [[new, old], [new]]


async def test_who_is_limited_to_queues_sees_nothing_of_others() -> None:
    async with a_dashboard() as given:
        ours = (await given.client.enqueue("mine", kind="send")).id
        theirs = (await given.client.enqueue("theirs", kind="send", tenant="acme")).id

        whole = await given.page("/jobs", who=LIMITED)
        found = [
            await _ids_at(given, f"/jobs?{query}", who=LIMITED)
            for query in ("text=send", f"text={theirs}", f"text={theirs[:20]}", "text=acme", "queue=theirs")
        ]

    assert (_ids(whole), found) == ([ours], [[ours], [], [], [], []])
    assert [option.attributes["value"] for option in whole.all("option")] == ["mine"]
    assert whole.one(class_="tabs").all("a")[0].text == "All 1"


async def test_when_there_is_nothing_it_says_what_to_do() -> None:
    async with a_dashboard() as given:
        nothing = await given.page("/jobs")
        no_match = await given.page("/jobs?kind=none")

    assert "windlass enqueue --queue mail" in nothing.one(class_="empty").text
    assert no_match.one(class_="empty").one("h2").text == "No job matches"
    assert no_match.one(class_="empty").one("a").attributes["href"] == "/jobs"


async def test_all_that_match_are_retried_or_deleted_at_once_by_those_who_may(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_dashboard(max_attempts=1) as given:
        await died(given.client, ["Boom", "Boom"], queue="mail", kind="send")
        await died(given.client, ["Boom"], queue="other")

        viewer = await given.page("/jobs?state=dead&queue=mail", who=Role.VIEW)
        page = await given.page("/jobs?state=dead&queue=mail", who=Role.OPERATE)
        retry, delete = page.one(class_="bulk").all("button")
        all_seen = (
            (await given.page("/jobs?state=dead&kind=send", who=Role.OPERATE)).one(class_="bulk").all("button")[0]
        )
        with monkeypatch.context() as patch:
            patch.setattr(jobs, "ON_A_PAGE", 1)
            more = (await given.page("/jobs?state=dead&queue=mail&kind=send")).one(class_="bulk").all("button")[0]
        offered = [
            len((await given.page(f"/jobs?{query}")).all(class_="bulk"))
            for query in ("", "state=pending", "state=dead&text=Boom", "state=dead&before=2", "state=cancelled")
        ]
        told = await given.done("/jobs/retry", json.loads(retry.attributes["data-body"]), who=Role.OPERATE)
        left = [await _ids_at(given, f"/jobs?state=dead{query}") for query in ("", "&kind=send")]

    assert not viewer.one(class_="bulk").all("button")
    assert retry.attributes["data-confirm"].startswith("Retry 2 dead jobs in the queue mail?")
    assert delete.attributes["data-confirm"].startswith("Delete 2 dead jobs in the queue mail?")
    assert "data-undo" in delete.attributes
    assert all_seen.attributes["data-confirm"].startswith("Retry 2 dead jobs of the kind send?")
    assert more.attributes["data-confirm"].startswith("Retry at least 1 dead job in the queue mail, of the kind send?")
    assert offered == [0, 0, 0, 0, 0]
    assert (told["count"], [len(ids) for ids in left]) == (2, [1, 0])


async def test_ended_well_are_only_deleted() -> None:
    async with a_dashboard() as given:
        await given.client.enqueue("mail")
        claim = await given.client.claim("mail")
        assert claim is not None
        await given.client.ack(claim)

        page = await given.page("/jobs?state=succeeded")

    [delete] = page.one(class_="bulk").all("button")
    assert (delete.attributes["data-call"], "data-undo" in delete.attributes) == ("/jobs/delete", True)
    assert delete.attributes["data-confirm"].startswith("Delete 1 succeeded job?")


def test_what_is_changed_at_once_ends_at_the_newest_that_was_seen() -> None:
    seen: list[Job] = [a_dead_job(7), a_dead_job(3)]
    until, since = START + timedelta(seconds=5), START

    without = bulk_of(JobFilter(state="dead"), seen, 2)
    within = bulk_of(JobFilter(state="dead", tenant="acme", since=since, until=until), seen, None)

    assert without is not None
    assert within is not None
    assert without.body == {"filter": {"state": "dead", "until": "2026-01-01T12:00:07.000001+00:00"}}
    assert within.body["filter"] == {
        "state": "dead", "tenant": "acme", "since": since.isoformat(), "until": until.isoformat(),
    }  # fmt: skip
    assert within.meant == (
        "at least 2 dead jobs of the tenant acme, made since 2026-01-01 12:00:00 UTC, "
        "made before 2026-01-01 12:00:05 UTC"
    )
    assert bulk_of(JobFilter(state="dead"), [], 0) is None
    assert bulk_of(JobFilter(state="pending"), seen, 2) is None
