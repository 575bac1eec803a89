"""A text is found in payloads by those who see them; others find it in what they are told, and find out no secrets."""

import json
from base64 import b64decode
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.http.given_app import GivenApp, an_app
from windlass import NewJob
from windlass.api.roles import Role
from windlass.codec import Encoded
from windlass.http import seen_payloads

PATHS = ("/jobs", "/jobs/newest")


async def _filled(given: GivenApp) -> None:
    """Enqueue jobs of which every second has a secret, by its name or by what the job tells."""
    for number in range(10):
        payload = {"to": f"ada-{number}"} | ({"password": "canary"} if number % 2 else {"pin": "canary"})
        job = NewJob("a", Encoded(json.dumps(payload).encode(), "json"), headers={"windlass-secret": "pin"})
        await given.client.enqueue_many([job])


async def _look(given: GivenApp, path: str, who: Role, text: str, **others: object) -> Any:  # noqa: ANN401 - the JSON edge
    reply = await given.get(f"{path}?{urlencode({'payload_text': text, **others})}", who=who)
    assert reply.status == 200, reply.body
    return reply.document


@pytest.mark.parametrize("path", PATHS)
async def test_a_secret_is_found_by_those_alone_who_see_it(path: str) -> None:
    """Also by where the page ends nobody learns whether a guess was right."""
    async with an_app() as given:
        await _filled(given)
        for who in (Role.VIEW, Role.OPERATE):
            for others in ({}, {"limit": 1}, {"limit": 3}):
                right = await _look(given, path, who, "canary", **others)
                part = await _look(given, path, who, '"password": "c', **others)
                wrong = await _look(given, path, who, "kanarie", **others)
                assert right == part == wrong == {"jobs": []}
        for who in (Role.WORK, Role.ADMIN):
            assert len((await _look(given, path, who, "canary"))["jobs"]) == 10


@pytest.mark.parametrize("path, cursor", [("/jobs", "after"), ("/jobs/newest", "before")])
async def test_what_everybody_sees_is_found_page_by_page(
    path: str, cursor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen_payloads, "CHUNK", 3)
    async with an_app() as given:
        await _filled(given)
        one = (await _look(given, path, Role.VIEW, "ada-7"))["jobs"]
        page = await _look(given, path, Role.VIEW, "ada-", limit=4)
        found = page["jobs"]
        while "next" in page:
            page = await _look(given, path, Role.VIEW, "ada-", limit=4, **{cursor: page["next"]})
            found += page["jobs"]

    assert [job["payload"]["to"] for job in one] == ["ada-7"]
    expected = [f"ada-{number}" for number in range(10)]
    assert [job["payload"]["to"] for job in found] == (expected if cursor == "after" else expected[::-1])


@pytest.mark.parametrize("path", PATHS)
async def test_a_look_through_large_payloads_ends_and_leads_on(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_payloads, "MOST_BYTES", 100)
    async with an_app() as given:
        await _filled(given)
        page = await _look(given, path, Role.VIEW, "nowhere")

    assert (page["jobs"], "next" in page) == ([], True)


@pytest.mark.parametrize("change", ["retry", "delete"])
async def test_no_job_is_changed_by_a_secret_that_one_cannot_see(change: str) -> None:
    wanted = {"filter": {"payload_text": "canary"}}
    async with an_app(max_attempts=1) as given:
        await _filled(given)
        claim = await given.client.claim("a")
        assert claim is not None
        await given.client.dead_letter(claim, "boom")
        refused = await given.post(f"/jobs/{change}", wanted, who=Role.OPERATE)
        done = await given.done(f"/jobs/{change}", wanted, who=Role.ADMIN)
        [entry] = await given.client.store.audit(limit=10)

    assert (refused.status, refused.error) == (422, "invalid_value")
    assert b"give their ids" in refused.body
    assert done == {"count": 1}
    # those who read the audit need not be among those who see payloads
    assert entry.detail == {"count": "1", "payload_text": "***"}


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": {"password": "canary"}, "a": 1}',
        b'{"pin": "canary", "pin": "***"}',
        b'{"rate": NaN, "password": "canary"}',
        b'{"pin": "canary"}\n{"pin": "canary"}',
    ],
)
async def test_a_secret_in_json_that_is_read_otherwise_or_not_at_all_is_neither_told_nor_found(data: bytes) -> None:
    async with an_app() as given:
        job = NewJob("a", data, headers={"windlass-secret": "pin"} if b"pin" in data else {})
        [made] = await given.client.enqueue_many([job])
        told = (await given.get(f"/jobs/{made.id}?payload=base64", who=Role.VIEW)).document
        found = [await _look(given, path, Role.VIEW, "canary") for path in PATHS]

    assert b"canary" not in b64decode(told["payload_base64"])
    assert [page["jobs"] for page in found] == [[], []]
