"""A text that is looked for: what is found, in which order, and from which page on."""

from collections.abc import AsyncIterator, Sequence

import pytest

import windlass
from windlass import Client, NewJob
from windlass.client.look_back import look_back
from windlass.core.filters import JobFilter
from windlass.http.dashboard import job_search
from windlass.http.dashboard.job_search import having, reach_of
from windlass.http.payload_reading import PayloadReading
from windlass.testing import FakeClock

ANYTHING = JobFilter()
ID = "01900000-0000-7000-8000-000000000000"


@pytest.fixture(params=["memory://", "sqlite:///{}/jobs.db"])
async def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    url = str(request.param).format(tmp_path_factory.mktemp("search"))
    async with windlass.connect(url, clock=FakeClock(), max_attempts=1) as client:
        yield client


async def _found(
    client: Client, text: str, chosen: JobFilter = ANYTHING, *, limit: int = 3, reads: bool = True
) -> list[str]:
    """Return the payloads of all that is found, page by page."""
    found: list[str] = []
    before: int | None = None
    while True:
        reach = await reach_of(client.store, chosen, reads=reads)
        step = having(client.store, chosen, text, reach, PayloadReading(client.clock).of("tester"))
        page = await look_back(step, limit=limit, before=before, clock=client.clock, seconds=-1.0)
        assert len(page.jobs) <= limit
        found += [job.payload.decode() for job in page.jobs]
        assert page.next is None or before is None or page.next < before
        before = page.next
        if before is None:
            return found


async def _fail(client: Client, queue: str, error: Exception) -> None:
    claim = await client.claim(queue)
    assert claim is not None
    await client.dead_letter(claim, error)


async def _each_way(client: Client, text: str) -> Sequence[str]:
    """Enqueue jobs that have a text in each way; return their payloads, the newest first."""
    await client.enqueue("a", f'"{text}"')
    await client.enqueue("a", b"1", kind=text)
    await client.enqueue("a", b"2", tenant=text)
    await client.enqueue("a", b"3", unique=text)
    await client.enqueue("a", b"4", kind=f"x{text}x")
    await client.enqueue("dies", b"5")
    await _fail(client, "dies", type(text, (Exception,), {})("it broke"))
    await client.enqueue("dies", b"6")
    await _fail(client, "dies", ValueError(f"of {text}"))
    return ["6", "5", "4", "3", "2", "1", f'"\\"{text}\\""']


async def test_a_text_is_found_wherever_it_stands_page_by_page_and_each_job_once(client: Client) -> None:
    everywhere = await _each_way(client, "acme")
    await client.enqueue_many([NewJob("a", b"no") for _ in range(5)])
    [again] = [each.id for each in await client.enqueue_many([NewJob("a", b"acme", kind="acme", tenant="acme")])]

    assert await _found(client, "acme") == ["acme", *everywhere]
    assert await _found(client, "acme", limit=1) == ["acme", *everywhere]
    assert await _found(client, "acme", JobFilter(queue="dies")) == ["6", "5"]
    assert await _found(client, "acme", JobFilter(kind="acme")) == ["acme", "1"]
    assert await _found(client, "acme", JobFilter(kind="other")) == []
    assert await _found(client, again) == ["acme"]


async def test_beyond_the_newest_only_what_is_named_so_is_found(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_search, "NEWEST", 6)
    old = await _each_way(client, "acme")
    await client.enqueue_many([NewJob("a", b"no") for _ in range(4)])
    new = await _each_way(client, "more")
    await client.enqueue_many([NewJob("a", payload) for payload in (b"acme 1", b"no", b"acme 2")])

    assert await _found(client, "acme", limit=2) == ["acme 2", "acme 1", *(old[at] for at in (1, 3, 4, 5))]
    assert await _found(client, "more") == [new[at] for at in (0, 1, 2, 3, 4, 5)]


async def test_a_filter_that_says_the_same_as_the_text_is_found_beyond_the_newest(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_search, "NEWEST", 2)
    await client.enqueue_many([NewJob("a", str(n).encode(), tenant="acme") for n in range(4)])

    assert await _found(client, "acme", JobFilter(tenant="acme")) == ["3", "2", "1", "0"]


@pytest.mark.parametrize("text", ["a b", "é", "%", "_", "\\", "' or 1=1 --", "0" * 8, "f" * 200])
async def test_a_text_that_can_be_no_name_is_looked_for_as_it_is(client: Client, text: str) -> None:
    await client.enqueue_many([NewJob("a", b"no"), NewJob("a", f"<{text}>".encode())])

    assert await _found(client, text) == [f"<{text}>"]


async def test_a_job_is_found_by_the_beginning_of_its_id_if_it_is_chosen(client: Client) -> None:
    first = (await client.enqueue("a", b"1")).id
    await client.enqueue_many([NewJob("a", b"no", id=f"{n:08x}-0000-4000-8000-000000000000") for n in range(5)])

    for text in (first, first[:30], first.upper(), first.replace("-", "")):
        assert await _found(client, text) == ["1"], text
        assert await _found(client, text, JobFilter(queue="b")) == []
        assert await _found(client, text, JobFilter(state="dead")) == []


async def test_a_job_and_an_older_one_that_carries_its_id_are_found_once_each(client: Client) -> None:
    await client.enqueue("a", ID.encode())
    await client.enqueue("a", b"it", id=ID)

    assert await _found(client, ID, limit=1) == ["it", ID]


@pytest.mark.parametrize("reads", [True, False])
async def test_what_is_secret_is_not_found(client: Client, *, reads: bool) -> None:
    await client.enqueue("a", {"to": "me", "password": "canary"})
    await client.enqueue("a", b'{"to": "me", "password": "canary"}')
    await client.enqueue("a", {"to": "canary"})

    assert await _found(client, "canary", reads=reads) == ['{"to":"canary"}']


async def test_who_may_not_read_payloads_learns_nothing_by_where_a_page_ends(client: Client) -> None:
    await client.enqueue_many([NewJob("a", {"password": "canary"}) for _ in range(5)])
    reach = await reach_of(client.store, ANYTHING, reads=False)

    reading = PayloadReading(client.clock).of("tester")

    secret, nothing = [
        await having(client.store, ANYTHING, text, reach, reading)(None, 2) for text in ("canary", "nothing")
    ]

    assert secret == nothing


async def test_fewer_payloads_are_looked_at_for_who_may_not_read_them(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_search, "MASKED", 2)
    await client.enqueue_many(
        [NewJob("a", payload, kind="acme.x") for payload in (b"acme 1", b"acme 2", b"3", b"acme 4")]
    )

    assert await _found(client, "acme", limit=1, reads=False) == ["acme 4", "3", "acme 2", "acme 1"]
    assert await _found(client, "acme ", limit=1, reads=False) == ["acme 4"]
