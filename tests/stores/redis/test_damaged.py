"""What the log says of damaged jobs: of each once, however often it is met."""

import logging

import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of, with_options
from tests.stores.redis.calls import opened, wanting
from windlass.stores.redis import damaged
from windlass.testing.conformance.given import a_job


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def test_each_job_is_named_once_for_each_thing_that_it_is_left_out_of(caplog: pytest.LogCaptureFixture) -> None:
    told = damaged.Told()

    for what in (damaged.CLAIM, damaged.PRUNE, damaged.CLAIM):
        told.tell(what, [("a", "why"), ("b", "why")])

    assert errors(caplog) == [what % (name, "why") for what in (damaged.CLAIM, damaged.PRUNE) for name in "ab"]


def test_only_so_many_are_remembered_the_last_ones(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damaged, "MOST_TOLD", 2)
    told = damaged.Told()

    for name in "abccba":
        told.tell("%s: %s", [(name, "why")])

    assert errors(caplog) == [f"{name}: why" for name in "abca"]


async def test_where_queues_are_spread_each_is_named_once_too(url: str, caplog: pytest.LogCaptureFixture) -> None:
    url = with_options(url, "spread=queues")
    async with opened(url) as first, opened(url) as store:
        job = a_job("q")
        await first.enqueue([job])
        [server] = servers_of(url)
        ask(server, "HSET", f"{{{prefix_of(url)}|q}}|job|{job.id}", "head", "\x91")

        for queues in (["q"], ["q"], ["q", "r"], ["r", "q"]):
            assert await store.claim(wanting(*queues)) == []

    assert [text.split(" ")[1] for text in errors(caplog)] == [job.id]
