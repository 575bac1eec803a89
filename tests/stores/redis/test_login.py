"""Who may come in: a wrong password is told at once and never shown, and few rights are enough."""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import pytest

import windlass
from tests.redis.private import PrivateRedis
from tests.stores.redis.calls import LOOKS, WRITES, opened
from windlass import StoreUnavailable
from windlass.connect import migrator
from windlass.core.topics import queue_topic
from windlass.testing.conformance.given import a_job

SECRET: Final = "hunter2-canary"  # noqa: S105 - it is to be looked for
LEAST: Final = (
    "~{windlass}|* ~{windlass|*}|* resetchannels &windlass|news -@all +@read +@write +@scripting +@connection "
    "-@dangerous +subscribe +publish +time +info"
)
"""What a user of ours needs."""


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    users = {
        "worker": f"on >of-the-worker {LEAST}",
        "stranger": "on >of-the-stranger ~{others}* +@all",
        "looker": f"on >of-the-looker {LEAST} -info",
        "gone": "off >of-the-gone ~* &* +@all",
    }
    with PrivateRedis(conf={"requirepass": "of everybody"}, users=users) as private:
        yield private


@pytest.mark.parametrize(
    "user, password, said",
    [
        ("", SECRET, "refused user or password: check those in the URL"),
        ("worker", SECRET, "refused user or password: check those in the URL"),
        (SECRET, "of-the-worker", "refused user or password: check those in the URL"),
        ("gone", "of-the-gone", "refused user or password: check those in the URL"),
        ("stranger", "of-the-stranger", "refused the user"),
        ("looker", "of-the-looker", "refused the user"),
    ],
)
async def test_who_may_not_come_in_is_told_at_once_and_no_secret_is_shown(
    private: PrivateRedis, user: str, password: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = private.url_for(user, password)
    began = time.monotonic()

    with caplog.at_level("DEBUG"), pytest.raises(StoreUnavailable, match=said) as told:
        await windlass.connect(url).open()

    assert time.monotonic() - began < 5
    assert not told.value.retryable
    shown = f"{told.value!r} {told.value.__cause__!r} {caplog.text}"
    assert [secret for secret in (SECRET, password, "of everybody") if secret in shown] == []


async def test_who_gives_no_password_is_told_at_once(private: PrivateRedis) -> None:
    with pytest.raises(StoreUnavailable, match="refused user or password") as told:
        await windlass.connect(f"redis://127.0.0.1:{private.port}/0").open()

    assert not told.value.retryable


async def test_a_password_that_nobody_asked_for_is_told_of() -> None:
    with PrivateRedis() as open_to_all, pytest.raises(StoreUnavailable, match="refused user or password") as told:
        await windlass.connect(open_to_all.url_for("", SECRET)).open()

    assert SECRET not in f"{told.value} {told.value.__cause__}"


@pytest.mark.parametrize("spread", ["", "?spread=queues"], ids=["one tag", "spread"])
async def test_few_rights_are_enough(private: PrivateRedis, spread: str) -> None:
    url = private.url_for("worker", "of-the-worker") + spread
    async with opened(url) as store, opened(url) as other:
        for scenario in WRITES:
            await (await scenario(store, f"{scenario.__name__}-{len(spread)}"))(store)
        for look in LOOKS.values():
            await look(store)
        await store.set_moved(None)
        # what another process does is heard
        rung = asyncio.Event()
        stop = store.listen([queue_topic("heard")], rung.set)
        async with asyncio.timeout(10):
            await rung.wait()
            rung.clear()
            await other.enqueue([a_job("heard")])
            await rung.wait()
        stop()
    work = migrator(url)
    assert work is not None
    assert (await work.look()).found == 1
