"""Two layers of settings in the store: what is declared, and over it what an operator sets."""

import pytest

from tests.steps.recording import Recording
from windlass.core.commands import SetQueueSettings
from windlass.core.queries import GetQueueSettings
from windlass.core.queue_settings import NO_SETTINGS, StoredSettings
from windlass.core.store import Store
from windlass.testing.conformance.given import a_job, wanting

PAUSED, RESUMED = StoredSettings(paused=True), StoredSettings(paused=False)


@pytest.fixture
def store(recording: Recording) -> Store:
    return recording.store


async def gives(store: Store) -> bool:
    """Whether the default queue gives a claim, looks paused nowhere, or the other way round."""
    given = bool((await store.claim(wanting())).jobs)
    [stats] = await store.stats("default")
    assert stats.paused is not given
    assert await store.paused(["default"]) == ([] if given else ["default"])
    return given


async def test_a_queue_whose_declared_settings_pause_it_gives_no_claim(store: Store) -> None:
    await store.enqueue([a_job()])

    await store.do(SetQueueSettings("default", PAUSED, "declared"))

    assert not await gives(store)
    assert await store.ask(GetQueueSettings(["default"])) == {"default": PAUSED}


async def test_an_override_holds_whatever_is_declared_later(store: Store) -> None:
    await store.enqueue([a_job()])
    await store.do(SetQueueSettings("default", RESUMED))

    await store.do(SetQueueSettings("default", PAUSED, "declared"))

    assert await gives(store)


async def test_a_pause_of_an_operator_holds_whatever_is_declared(store: Store) -> None:
    await store.enqueue([a_job()])
    await store.do(SetQueueSettings("default", RESUMED, "declared"))
    await store.set_paused("default", paused=True)

    await store.do(SetQueueSettings("default", RESUMED, "declared"))

    assert not await gives(store)


async def test_settings_that_are_not_given_change_nothing(store: Store) -> None:
    await store.enqueue([a_job()])
    await store.do(SetQueueSettings("default", PAUSED, "declared"))

    await store.do(SetQueueSettings("default", NO_SETTINGS, "declared"))
    await store.do(SetQueueSettings("default", NO_SETTINGS))

    assert not await gives(store)
