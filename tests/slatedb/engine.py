"""The engine's own threads: they begin with the first database of a process, and stay."""

import asyncio
import threading
from functools import cache

from windlass.connect import open_store


@cache
def begin_engine() -> None:
    """Let the engine open what it keeps open for the life of the process, so that tests can count the rest."""

    async def open_once() -> None:
        store = open_store("slatedb+memory://begin")
        await store.open()
        await store.close()

    # a test has an event loop of its own
    thread = threading.Thread(target=asyncio.run, args=[open_once()])
    thread.start()
    thread.join()
