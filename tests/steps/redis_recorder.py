"""Recorder of the Redis store: for the time of a block its scripts also write which of their steps run."""

import re
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from hashlib import sha1
from typing import Final

import msgspec
import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of
from tests.redis.server import new_url
from tests.steps.recording import ENDS, STARTS_RUNNING, STARTS_WAITING, STOPS_RUNNING, Step
from windlass.connect import open_store
from windlass.core.states import State
from windlass.core.store import Store
from windlass.stores.redis import keys, runner
from windlass.stores.redis.scripts import Script, script
from windlass.testing import FakeClock, SeededRng

FENCE: Final = "fence"
"""The function by which settlements find their job, but for a plain success of a job that no other follows."""
_STEP: Final = re.compile(
    rf"^ *(?:local function|--) ({STARTS_WAITING}|{STARTS_RUNNING}|{STOPS_RUNNING}|{ENDS}|{FENCE})[(:].*$", re.MULTILINE
)
"""The beginning of a step; enqueue_one.lua has one without a function."""
_KEPT: Final = "steps_of_a_test"
"""The key of the steps that ran."""
_decode: Final = msgspec.msgpack.Decoder(tuple[str, str, str, str]).decode


@cache
def recording_script(name: str) -> Script:
    """Return a script whose steps write their names and jobs."""
    text = _STEP.sub(_writing, script(name).text)
    return script(name)._replace(text=text, digest=sha1(text.encode(), usedforsecurity=False).hexdigest())


def _writing(step: re.Match[str]) -> str:
    # a fence has no job yet; that of enqueue_one.lua is an array
    job = "{}" if step[1] == FENCE else "job"
    values = f"'{step[1]}', job.queue or job[2] or '', job.kind or job[3] or '', job.state or ''"
    return f"{step[0]}\ndo local job = {job} redis.call('RPUSH', KEYS[1] .. '{_KEPT}', cmsgpack.pack({{{values}}})) end"


@contextmanager
def recording_scripts() -> Generator[None]:
    """Let the stores of this process run scripts that record their steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "script", recording_script)
        yield


class RedisRecording:
    """A store whose scripts record their steps."""

    def __init__(self, store: Store, url: str) -> None:
        self.store = store
        [self._server] = servers_of(url)
        self._prefix = keys.prefix_of(prefix_of(url))

    def follow(self, job_id: str) -> None:
        """Let the job be one that others follow."""
        self.write(job_id, "has_followers", "1")

    def write(self, job_id: str, field: str, value: str) -> None:
        """Write a field of the hash of a job, past the store."""
        ask(self._server, "HSET", f"{self._prefix}job|{job_id}", field, value)

    async def steps(self) -> list[Step]:
        return [
            Step(name, queue, kind or None, State(old) if old else None)
            for name, queue, kind, old in self._taken()
            if name != FENCE
        ]

    def names(self) -> list[str]:
        """Return the names of the steps, and `FENCE` for each fence, since the last call of this class."""
        return [name for name, *_ in self._taken()]

    def _taken(self) -> list[tuple[str, str, str, str]]:
        found: list[str] = ask(self._server, "LRANGE", self._prefix + _KEPT, 0, -1)
        ask(self._server, "DEL", self._prefix + _KEPT)
        return [_decode(each.encode(errors="surrogateescape")) for each in found]


@asynccontextmanager
async def recorded_redis(clock: FakeClock) -> AsyncGenerator[RedisRecording]:
    """Open a store, and record the steps of its jobs."""
    with new_url() as url, recording_scripts():
        store = open_store(url, clock=clock, rng=SeededRng())
        await store.open()
        yield RedisRecording(store, url)
        await store.close()
