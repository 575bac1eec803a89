from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.demo import ledger, witness
from windlass.demo.app import app, daily_digest, make_thumbnail, send_email
from windlass.demo.ledger import What
from windlass.testing import in_memory

HUNG_UP_ONCE = "customer-2@example.com"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The ledger of this process, for one test."""
    monkeypatch.setenv("DEMO_LEDGER", str(tmp_path / "ledger"))
    witness.pen.cache_clear()
    yield tmp_path / "ledger"
    witness.pen().close()
    witness.pen.cache_clear()


async def test_an_email_that_was_hung_up_on_is_sent_by_the_next_attempt_and_all_of_it_is_written_down(
    written: Path,
) -> None:
    async with in_memory(app) as test:
        job = (await send_email.enqueue(HUNG_UP_ONCE)).id

        attempts = await test.drain(advance=True)

    events = ledger.read(written)
    assert attempts == 2
    assert [(event.what, event.delivery) for event in events] == [
        (What.STARTED, 1),
        (What.RAISED, 1),
        (What.STARTED, 2),
        (What.EFFECT, 2),
        (What.RETURNED, 2),
        (What.ACCEPTED, 2),
    ]
    assert {event.job for event in events} == {job}
    assert events[0].note == "send_email"
    assert "hung up" in events[1].note


async def test_a_digest_enqueues_its_email_with_its_success() -> None:
    async with in_memory(app) as test:
        job = (await daily_digest.enqueue()).id

        await test.drain()

        email = test.assert_enqueued(send_email)
        assert email.parent_id == job


async def test_a_thumbnail_is_made() -> None:
    async with in_memory(app) as test:
        handle = await make_thumbnail.enqueue(7)

        await test.drain()

        assert await handle.result(0) > 0
