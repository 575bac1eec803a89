"""Whatever went wrong: of a store that is closed, or could not be opened, no task and no socket is left."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from tests.redis.keys import with_options
from tests.redis.ports import free_port
from tests.redis.proxy import Proxy
from tests.stores.redis.calls import opened
from windlass.connect import open_store
from windlass.core.errors import StoreUnavailable
from windlass.core.requests import KvWrite
from windlass.core.store import Store
from windlass.core.topics import queue_topic

SHORT: Final = 0.5


class Before:
    """What there was; `proxy` has sockets too, as many as it has clients."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._tasks, self._sockets = tasks(), sockets()

    async def is_all_there_is(self) -> None:
        self._proxy.release()
        async with asyncio.timeout(10):
            while self._proxy.clients or not tasks() <= self._tasks:  # noqa: ASYNC110 - a proxy tells nobody
                await asyncio.sleep(0.005)
        assert sockets() <= self._sockets


def tasks() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks()


def sockets() -> set[str]:
    links = (str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    return {link for link in links if link.startswith("socket:")}


async def call_many(store: Store) -> list[object]:
    calls = (store.kv_write(KvWrite(b"k%d" % number, b"v")) for number in range(20))
    return [*await asyncio.gather(*calls, return_exceptions=True)]


async def test_a_close_leaves_nothing_whatever_became_of_the_connections(url: str, proxy: Proxy) -> None:
    async with opened(url):
        pass
    before = Before(proxy)
    store = open_store(with_options(proxy.url, f"timeout={SHORT}&connections=4"))
    await store.open()
    stop = store.listen([queue_topic("q")], lambda: None)

    done = [await call_many(store)]
    proxy.reset()
    done.append(await call_many(store))
    lost = [proxy.drop_reply(each) for each in (1, 3, 5)]
    done.append(await call_many(store))
    proxy.hold()
    held = await call_many(store)
    proxy.release()
    done.append(await call_many(store))
    assert len(proxy.clients) <= 4 + 1 + 4
    calls = [asyncio.create_task(call_many(store)) for _ in range(3)]
    for _ in range(20):
        await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    stop()
    await store.close()

    assert done == [[True] * 20] * 4
    assert all(event.is_set() for event in lost)
    assert all(isinstance(error, StoreUnavailable) for error in held)
    await before.is_all_there_is()


@pytest.mark.parametrize("fault", ["refused", "silent", "reset", "forbidden", "old"])
async def test_a_store_that_could_not_be_opened_leaves_nothing(url: str, proxy: Proxy, fault: str) -> None:
    before = Before(proxy)
    opens = with_options(proxy.url, f"timeout={SHORT}")
    match fault:
        case "refused":
            opens = f"redis://127.0.0.1:{free_port()}/0?timeout={SHORT}"
        case "silent":
            proxy.hold()
        case "reset":
            proxy.refusing = True
        case "forbidden":
            proxy.fail(1, "NOPERM User nobody has no permissions to run the 'evalsha' command")
        case _:
            opens = with_options(opens, "create=no")

    with pytest.raises(StoreUnavailable):
        await open_store(opens).open()

    assert url != opens
    await before.is_all_there_is()
