"""The store of `prove-your-own-store.md` passes the whole conformance suite; `test_own_store` runs a part of it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from examples.dictionary_store.store import DictionaryStore
from windlass.core.clock import Clock, Rng
from windlass.core.store import Store
from windlass.testing import FakeClock
from windlass.testing.conformance import *  # noqa: F403 - one import collects them all
from windlass.testing.machine import Place, run_machine

pytestmark = pytest.mark.slow


@pytest.fixture
def new_store(clock: FakeClock) -> Callable[[], Store]:
    only = DictionaryStore(clock=clock)
    return lambda: only


@contextmanager
def fresh() -> Generator[Place]:
    only: list[DictionaryStore] = []

    def door(clock: Clock, _rng: Rng) -> Store:
        only[:] = only or [DictionaryStore(clock=clock)]
        return only[0]

    yield door


def test_it_does_what_the_model_does() -> None:
    run_machine(fresh)
