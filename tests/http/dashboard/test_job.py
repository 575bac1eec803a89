"""The page of one job."""

import json
from datetime import timedelta

import pytest

from tests.http.dashboard.given_dashboard import Element, a_dashboard
from tests.http.given_app import LIMITED
from windlass import Unique
from windlass.api.roles import Role
from windlass.codec import Encoded
from windlass.core.job import Delivery, Failure, Note, Progress
from windlass.core.states import State
from windlass.http.dashboard.carried_text import MOST_BYTES, MOST_TEXT
from windlass.http.dashboard.delivery_shown import SUMMARY, shown_delivery
from windlass.http.dashboard.pages import job as page_of_job
from windlass.testing import FakeClock
from windlass.testing.clock import START
from windlass.testing.conformance.given import a_job

AWAY = "01900000-0000-7000-8000-000000000000"


def _raised(text: str) -> ValueError:
    try:
        int(text)
    except ValueError as error:
        return error
    raise AssertionError


def _facts(page: Element) -> dict[str, str]:
    """Return what stands in the lists of facts and of headers."""
    return {
        each.one("dt").text: each.one("dd").text
        for facts in page.all("dl", class_="facts")
        for each in facts.all("div")
    }


def _buttons(page: Element) -> dict[str, object]:
    """Return the buttons of the job: what each calls, with which body."""
    return {
        each.text: (each.attributes["data-call"], json.loads(each.attributes["data-body"]))
        for each in page.all("button", data_call=None)
    }


async def test_all_of_a_job_is_there_and_nothing_that_is_secret() -> None:
    async with a_dashboard() as given:
        client = given.client
        made = await client.enqueue(
            "mail", {"to": "me", "password": "hush"}, kind="send", tenant="acme",
            headers={"trace": "t1", "authorization": "hush", "windlass-secret": "to"},
        )  # fmt: skip
        claim = await client.claim("mail")
        assert claim is not None
        lines = [("info", "opened"), ("warning", "slow")]
        await client.store.note([Note(made.id, claim.token, Progress(1_234_567, 2_500_000, "parts"), lines)])
        running = await given.page(f"/jobs/{made.id}")
        await client.ack(claim, {"sent": 1, "token": "hush"})
        whole = await given.get(f"/jobs/{made.id}")
        page = await given.page(f"/jobs/{made.id}")

    assert b"hush" not in whole.body
    facts = _facts(page)
    assert {"Queue": "mail", "Kind": "send", "Tenant": "acme"}.items() <= facts.items()
    assert {"trace": "t1", "authorization": "***"}.items() <= facts.items()
    assert "windlass-secret" not in facts
    assert {"Made", "Run at", "Claimed", "Finished", "Server"} <= facts.keys()
    assert [json.loads(each.text) for each in page.all("pre", class_="carried")] == [
        {"to": "***", "password": "***"}, {"sent": 1, "token": "***"},
    ]  # fmt: skip
    assert page.one(class_="job-head").one(class_="state").text == "succeeded"
    assert running.one("progress").attributes["value"] == "1234567"
    assert running.one(class_="job-progress").text.strip() == "1,234,567/2,500,000 parts"
    assert [line.text.split(maxsplit=3)[3] for line in page.one(role="log").all(class_="line")] == [
        "info #1 opened",
        "warning #1 slow",
    ]


@pytest.mark.parametrize(
    "state, expected",
    [
        (State.SCHEDULED, {"Run now": "/jobs/reschedule", "Cancel": "/jobs/cancel"}),
        (State.PENDING, {"Cancel": "/jobs/cancel"}),
        (State.RUNNING, {"Ask to stop": "/jobs/cancel"}),
        (State.SUCCEEDED, {"Delete": "/jobs/delete"}),
        (State.DEAD, {"Retry": "/jobs/retry", "Delete": "/jobs/delete"}),
        (State.CANCELLED, {"Retry": "/jobs/retry", "Delete": "/jobs/delete"}),
    ],
)
async def test_what_can_be_done_hangs_on_the_state_and_on_who_looks(state: State, expected: dict[str, str]) -> None:
    async with a_dashboard() as given:
        client = given.client
        made = (await client.enqueue("mail", delay=60 if state is State.SCHEDULED else None)).id
        if state not in (State.SCHEDULED, State.PENDING, State.CANCELLED):
            claim = await client.claim("mail")
            assert claim is not None
            if state is State.SUCCEEDED:
                await client.ack(claim)
            elif state is State.DEAD:
                await client.dead_letter(claim, "no")
        elif state is State.CANCELLED:
            await client.cancel(made)
        operator, viewer, producer = [
            _buttons(await given.page(f"/jobs/{made}", who=who)) for who in (Role.OPERATE, Role.VIEW, Role.PRODUCE)
        ]
        more = {"run_at": None}
        for label, path in expected.items():
            assert operator.pop(label) == (path, {"ids": [made], **(more if label == "Run now" else {})})
        label, path = next(iter(expected.items()))
        told = await given.done(path, {"ids": [made], **(more if label == "Run now" else {})}, who=Role.OPERATE)

    assert (operator, viewer) == ({}, {})
    assert producer.keys() == {"Cancel", "Ask to stop"} & expected.keys()
    assert told["outcomes"] in (["done"], ["removed"], ["requested"])


async def test_each_delivery_is_told_the_newest_first_with_its_error_folded() -> None:
    async with a_dashboard(max_attempts=2, clock=(clock := FakeClock())) as given:
        client = given.client
        made = (await client.enqueue("mail")).id
        for message in ("first", "second"):
            claim = await client.claim("mail")
            assert claim is not None
            clock.advance(timedelta(seconds=1.5))
            await client.nack(claim, _raised(message))
            clock.advance(3600)
            await client.store.promote(limit=10)

        page = await given.page(f"/jobs/{made}")

    newest, oldest = page.one("ol", class_="timeline").all("li")
    assert (newest.attributes["data-key"], newest.one("strong").text) == ("delivery-2", "2")
    assert newest.one(class_="error").text == "ValueError: invalid literal for int() with base 10: 'second'"
    assert "took 1.5 s" in oldest.text
    assert oldest.one("details").one("summary").text == "Traceback"
    assert "int(text)" in oldest.one("details").one("pre").text


class Missing(Exception): ...


async def test_an_operators_retry_stands_with_the_delivery_before_it() -> None:
    async with a_dashboard(max_attempts=1, clock=(clock := FakeClock())) as given:
        client = given.client
        dead, unclaimed = (await client.enqueue("mail")).id, (await client.enqueue("later")).id
        claim = await client.claim("mail")
        assert claim is not None
        await client.nack(claim, Missing("no"))
        await client.cancel(unclaimed)
        clock.advance(60)
        await client.retry(dead)
        await client.retry(unclaimed)

        [after_one] = (await given.page(f"/jobs/{dead}")).one("ol", class_="timeline").all("li")
        [before_all] = (await given.page(f"/jobs/{unclaimed}")).one("ol", class_="timeline").all("li")

    assert after_one.one(class_="error").text == f"{__name__}.Missing: no"
    assert "Retried by an operator at 2026-01-01 12:01:00" in after_one.text
    assert "0 cancelled before the first claim" in before_all.text
    assert "Retried by an operator at 2026-01-01 12:01:00" in before_all.text


async def test_it_tells_why_a_job_stands_where_it_stands() -> None:
    async with a_dashboard() as given:
        made = (await given.client.enqueue("mine")).id
        await given.client.pause("mine")

        paused = (await given.page(f"/jobs/{made}")).one("ul", class_="reasons")
        await given.client.resume("mine")
        resumed = (await given.page(f"/jobs/{made}")).one("ul", class_="reasons")
        limited = await given.page(f"/jobs/{made}", who=LIMITED)

    assert "paused" in paused.all("li")[0].text
    assert "windlass queues resume mine" in paused.all("code")[0].text
    assert "paused" not in resumed.text
    assert not limited.all("ul", class_="reasons")
    assert "your token does not see" in limited.text


async def test_what_a_job_enqueued_and_who_enqueued_it_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_of_job, "CHILDREN", 2)
    async with a_dashboard() as given:
        parent = (await given.client.enqueue("mail")).id
        children = [a_job("mail", kind="part", schedule_id="nightly")._replace(parent_id=parent) for _ in range(3)]
        await given.client.store.enqueue(children)

        above = await given.page(f"/jobs/{parent}")
        below = await given.page(f"/jobs/{children[0].id}")

    listed = above.one("ul", class_="children").all("a")
    assert [each.attributes["href"] for each in listed] == [f"/jobs/{children[at].id}" for at in (2, 1)]
    assert above.one("h2", id="children").text == "It enqueued 2+"
    assert f"/jobs?parent_id={parent}" in {each.attributes["href"] for each in above.all("a")}
    links = {each.attributes["href"] for each in below.one("aside").all("a")}
    assert {f"/jobs/{parent}", "/schedules?id=nightly", "/jobs?schedule_id=nightly"} <= links


@pytest.mark.parametrize(
    "payload, said, shown",
    [
        (b"text", "4 bytes, text", "text"),
        (b"\xff\x00", "2 bytes, bytes", "000000 ff 00"),
        (b"", "0 bytes, text", None),
        (Encoded(b"\xff", "sealed"), "1 bytes, bytes, written by codec 'sealed', which is not read here", "000000 ff"),
        (["x" * 30_000], f"29.3 KiB, JSON; the first {MOST_TEXT:,} characters", None),
        (b"\xff" * 5_000, f"4.9 KiB, bytes; the first {MOST_BYTES:,} of 5,000 bytes", None),
    ],
)
async def test_a_payload_is_shown_by_its_codec_as_far_as_there_is_room(
    payload: object, said: str, shown: str | None
) -> None:
    async with a_dashboard() as given:
        made = (await given.client.enqueue("mail", payload)).id

        page = await given.page(f"/jobs/{made}")

    assert page.one("h2", id="payload").one("span").text == said
    assert all(len(each.text) <= MOST_TEXT for each in page.all("pre"))
    if shown is not None:
        assert page.one("pre", class_="carried").text == shown


async def test_a_payload_that_was_replaced_is_shown_as_it_is_now() -> None:
    unique = Unique("order-7", until="claimed", on_conflict="replace")
    shown: list[object] = []
    async with a_dashboard() as given:
        for n in (1, 2):
            made = await given.client.enqueue("mail", {"n": n}, unique=unique)
            page = await given.page(f"/jobs/{made.id}")
            shown.append((_facts(page)["Unique key"], json.loads(page.one("pre", class_="carried").text)))

    assert shown == [("order-7", {"n": 1}), ("order-7", {"n": 2})]


async def test_a_long_log_is_cut_at_its_beginning_and_in_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_of_job, "LINES", 2)
    async with a_dashboard() as given:
        await given.client.enqueue("mail")
        claim = await given.client.claim("mail")
        assert claim is not None
        lines = [("info", "a"), ("info", "b"), ("error", "x" * 4_000)]
        await given.client.store.note([Note(claim.job.id, claim.token, None, lines)])

        page = await given.page(f"/jobs/{claim.job.id}")

    assert page.one("h2", id="written").text == "Log the last 2 of 3 lines"
    first, last = page.one(role="log").all(class_="line")
    assert first.text.endswith(" b")
    assert len(last.text) < page_of_job.LINE + 100


async def test_a_job_that_is_not_here_is_said_to_be_gone() -> None:
    async with a_dashboard() as given:
        theirs = (await given.client.enqueue("theirs")).id

        gone = await given.get(f"/jobs/{AWAY}")
        foreign = await given.get(f"/jobs/{theirs}", who=LIMITED)
        no_id = await given.get("/jobs/nothing")

    assert [reply.status for reply in (gone, foreign, no_id)] == [404, 404, 404]
    assert b"it was deleted, or pruned after its retention" in gone.body
    assert foreign.body == gone.body.replace(AWAY.encode(), theirs.encode())


def test_a_long_error_is_cut_and_whole_where_it_is_folded() -> None:
    failure = Failure("x" * 1_000 + "\nmore", "Boom")

    long = shown_delivery(Delivery(1, 1, START, START, None, "failed", failure))
    short = shown_delivery(Delivery(2, 1, START, None, None, None))

    assert long.error == f"{failure.summary[:SUMMARY]}…"
    assert (long.detail_is, long.detail) == ("All of the error", failure.summary)
    assert (short.took, short.outcome, short.look, short.error, short.detail) == (None, "running", "busy", None, None)


def test_a_delivery_that_somebody_stopped_does_not_look_like_one_that_failed() -> None:
    why = Failure("cancelled on request")

    looks = [shown_delivery(Delivery(1, 1, START, START, None, each, why)).look for each in ("failed", "cancelled")]

    assert looks == ["bad", "poor"]
