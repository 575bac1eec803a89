"""A serving side in a thread of a test's process, for tests that have no event loop of their own, or stop theirs."""

import asyncio
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

from tests.http.in_process import TOKEN, InProcess
from windlass.system import SystemClock, SystemRng


@contextmanager
def served_in_thread(behind: str) -> Generator[str]:
    """Serve the store at the URL `behind`, with services; give the URL. The token is in the environment meanwhile."""
    serving = InProcess(behind, clock=SystemClock(), rng=SystemRng(), upkeep=True)
    before = os.environ.get("WINDLASS_TOKEN")
    os.environ["WINDLASS_TOKEN"] = TOKEN
    try:
        with in_thread(serving):
            yield serving.url
    finally:
        if before is None:
            del os.environ["WINDLASS_TOKEN"]
        else:
            os.environ["WINDLASS_TOKEN"] = before


@contextmanager
def in_thread(serving: InProcess) -> Generator[None]:
    """Let it serve in an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="serving side")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(serving.start(), loop).result(10)
        try:
            yield
        finally:
            asyncio.run_coroutine_threadsafe(serving.stop(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
