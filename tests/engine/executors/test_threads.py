import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial

import pytest

from proofs.children import eventually
from windlass.engine.executors.threads import Threads

here: ContextVar[str] = ContextVar("here", default="nowhere")


@pytest.fixture
def threads() -> Iterator[Threads]:
    pool = Threads()
    yield pool
    pool.close()


def ours() -> int:
    return sum(thread.name.startswith("windlass thread") for thread in threading.enumerate())


async def test_a_function_runs_in_a_daemon_thread_and_returns(threads: Threads) -> None:
    thread = await threads.call(threading.current_thread)

    assert thread is not threading.current_thread()
    assert thread.daemon


async def test_a_function_sees_what_its_caller_has_set_and_changes_nothing_of_it(threads: Threads) -> None:
    def look() -> str:
        seen = here.get()
        here.set("in the thread")
        return seen

    here.set("at the caller")

    assert await threads.call(look) == "at the caller"
    assert here.get() == "at the caller"


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_whatever_a_function_raises_is_raised_at_the_call(threads: Threads, error: BaseException) -> None:
    def fall() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await threads.call(fall)

    assert raised.value is error
    assert await threads.call(lambda: "goes on") == "goes on"


async def test_a_stop_iteration_is_an_error_as_in_every_coroutine(threads: Threads) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await threads.call(lambda: next(iter(())))


async def test_a_thread_is_used_again(threads: Threads) -> None:
    idents = {await threads.call(threading.get_ident) for _ in range(50)}

    assert len(idents) == 1
    assert threads.busy == 0


async def test_calls_at_once_have_a_thread_each(threads: Threads) -> None:
    together = threading.Barrier(8, timeout=10)

    await asyncio.gather(*[threads.call(together.wait) for _ in range(8)])

    assert threads.busy == 0


async def test_more_calls_than_threads_wait_in_line() -> None:
    threads = Threads(most=2)
    go = threading.Event()
    order: list[int] = []

    def work(number: int) -> None:
        go.wait(10)
        order.append(number)

    calls = [asyncio.create_task(threads.call(partial(work, number))) for number in range(20)]
    await asyncio.sleep(0)
    assert threads.busy == 2

    go.set()
    await asyncio.gather(*calls)

    assert sorted(order) == list(range(20))
    assert ours() <= 2
    threads.close()


async def test_a_call_that_was_cancelled_in_line_never_begins() -> None:
    threads = Threads(most=1)
    go = threading.Event()
    ran: list[str] = []
    first = asyncio.create_task(threads.call(lambda: go.wait(10)))
    second = asyncio.create_task(threads.call(lambda: ran.append("second")))
    await asyncio.sleep(0)

    second.cancel()
    await asyncio.sleep(0)
    go.set()
    await first
    await threads.call(lambda: ran.append("third"))

    assert ran == ["third"]
    threads.close()


async def test_a_thread_goes_on_without_its_caller_and_is_free_when_it_has_ended() -> None:
    threads = Threads(most=1)
    go, begun, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(10)
        ended.set()

    call = asyncio.create_task(threads.call(work))
    await asyncio.to_thread(begun.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert threads.busy == 1

    go.set()

    assert await threads.call(ended.is_set)
    threads.close()


async def test_a_close_ends_idle_threads_at_once_and_busy_ones_later(threads: Threads) -> None:
    before = ours()
    go = threading.Event()
    together = threading.Barrier(3, timeout=10)
    await asyncio.gather(*[threads.call(together.wait) for _ in range(3)])
    busy = asyncio.create_task(threads.call(lambda: go.wait(10)))
    await asyncio.sleep(0)

    threads.close()
    assert ours() == before + 1
    go.set()
    await busy

    assert await asyncio.to_thread(eventually, lambda: ours() == before)
    assert await threads.call(lambda: "still works") == "still works"


async def test_an_idle_thread_ends_after_a_while() -> None:
    before = ours()
    threads = Threads(idle_for=0.0)

    await threads.call(lambda: None)

    assert await asyncio.to_thread(eventually, lambda: ours() == before)
    assert [await threads.call(lambda: 1) for _ in range(100)] == [1] * 100


async def test_an_idle_thread_holds_on_to_nothing(threads: Threads) -> None:
    class Thing:
        pass

    kept = weakref.ref(await threads.call(Thing))
    await threads.call(lambda: None)
    gc.collect()

    assert kept() is None


def test_a_loop_that_was_closed_meanwhile_is_left_alone(threads: Threads) -> None:
    go, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(10)

    async def begin() -> None:
        call = asyncio.create_task(threads.call(work))
        await asyncio.to_thread(begun.wait)
        call.cancel()

    asyncio.run(begin())
    go.set()

    assert eventually(lambda: threads.busy == 0)
    assert asyncio.run(threads.call(lambda: "another loop")) == "another loop"


PROGRAM = """
import asyncio, threading, time
from windlass.engine.executors.threads import Threads

async def main():
    begun = threading.Event()
    def work():
        begun.set()
        time.sleep(600)
    asyncio.create_task(Threads().call(work))
    await asyncio.to_thread(begun.wait)

loop = asyncio.new_event_loop()
loop.run_until_complete(main())
print("done", flush=True)
"""


def test_no_thread_keeps_the_interpreter_alive() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=False
    )

    assert (ended.returncode, ended.stdout) == (0, "done\n")
