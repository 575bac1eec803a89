import fcntl
import gc
import inspect
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import windlass
from windlass import (
    BlockingClient,
    Client,
    ClientClosed,
    Completed,
    InvalidValue,
    JobFilter,
    LockLost,
    NewJob,
    NotTransactional,
    ScheduleNotFound,
)
from windlass.blocking.client import BlockingKeyValue
from windlass.blocking.schedules import BlockingSchedules
from windlass.client.kv import KeyValue
from windlass.client.schedules import Schedules

NEVER_CLOSED = """
import sys
import windlass
client = windlass.connect_sync(sys.argv[1])
print(client.enqueue("email", b"hello").created)
"""


@pytest.fixture
def client() -> Iterator[BlockingClient]:
    with windlass.connect_sync("memory://") as client:
        yield client


def test_the_blocking_client_has_every_method_of_the_async_one() -> None:
    layers = ((Client, BlockingClient), (KeyValue, BlockingKeyValue), (Schedules, BlockingSchedules))
    for inner, layer in layers:
        names = {name for name, _ in inspect.getmembers(inner, inspect.isfunction) if not name.startswith("_")}

        assert names <= set(dir(layer))


def test_a_blocking_method_is_the_async_one() -> None:
    thin = {name: getattr(BlockingClient, name).__doc__ for name in dir(BlockingClient) if hasattr(Client, name)}

    for name in thin.keys() - {"close", "lock"} - set(dir(object)):
        assert thin[name] == getattr(Client, name).__doc__


def test_jobs_go_through_their_life_by_blocking_calls(client: BlockingClient) -> None:
    done = client.enqueue("email", {"to": "me"})
    client.enqueue_many([NewJob("email")])
    claim = client.claim("email", wait=5)
    assert claim is not None

    payload = client.decode(claim.job)
    client.ack(claim, "sent")

    found = client.wait(done.id, 5)
    assert payload == {"to": "me"}
    assert isinstance(found, Completed)
    assert client.stats("email").pending == 1


def test_schedules_are_put_and_steered_by_blocking_calls(client: BlockingClient) -> None:
    put = client.schedules.put("nightly", "@daily", NewJob("reports", b"all"), overlap="skip")
    client.schedules.pause("nightly")
    paused = client.schedules.get("nightly")
    client.schedules.resume("nightly")

    done = client.schedules.run_now("nightly")

    assert paused is not None
    assert paused.paused
    assert [each.id for each in client.schedules.list()] == [put.id]
    assert [job.id for job in client.jobs(JobFilter(schedule_id="nightly"))] == [done.id]
    assert client.schedules.remove("nightly")
    with pytest.raises(ScheduleNotFound):
        client.schedules.pause("nightly")


def test_what_is_listed_is_an_iterator_over_all_there_is(client: BlockingClient) -> None:
    done = client.enqueue_many([NewJob("email") for _ in range(250)])
    client.enqueue("joins", kv={f"part/{n:03}": b"v" for n in range(250)})

    assert [job.id for job in client.jobs(JobFilter(queue="email"))] == [each.id for each in done]
    assert len(list(client.kv.scan("part/"))) == 250
    assert len(list(client.jobs(limit=120))) == 120
    assert next(client.dead_jobs(), None) is None


def test_a_wrong_argument_of_a_list_is_refused_before_its_first_step(client: BlockingClient) -> None:
    with pytest.raises(InvalidValue, match="limit must be from 0"):
        client.jobs(limit=-1)
    with pytest.raises(InvalidValue, match="a kv prefix has at most"):
        client.kv.scan("p" * 1025)


def test_a_list_may_be_left_in_the_middle(client: BlockingClient) -> None:
    client.enqueue_many([NewJob("email") for _ in range(250)])

    first = next(client.jobs())

    assert first.queue == "email"
    assert len(list(client.jobs())) == 250


def test_it_works_without_with_and_refuses_calls_after_its_close() -> None:
    client = windlass.connect_sync("memory://")
    client.enqueue("email")

    client.close()
    client.close()

    with pytest.raises(ClientClosed):
        client.enqueue("email")
    with pytest.raises(ClientClosed):
        client.decode(None)  # type: ignore[arg-type]


def test_a_client_that_was_never_used_has_no_thread_to_close() -> None:
    before = threading.active_count()
    client = windlass.connect_sync("memory://")

    during = threading.active_count()
    client.close()

    assert before == during


def test_a_wrong_url_is_refused_at_once() -> None:
    with pytest.raises(windlass.InvalidURL):
        windlass.connect_sync("jobs.db")


def test_many_threads_share_one_client(client: BlockingClient) -> None:
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(client.enqueue, "email") for _ in range(200)]:
            assert done.result().created

    assert client.stats("email").pending == 200


def test_kv_and_lock_have_their_blocking_form(client: BlockingClient) -> None:
    with client.lock("press", 30) as held:
        client.kv.put("key", b"value")
        with pytest.raises(TimeoutError), client.lock("press", 30, wait=0):
            pass

    assert client.kv.get("key") == b"value"
    assert not held.lost.is_set()


def test_a_lost_lock_and_an_error_of_the_block_leave_it(client: BlockingClient) -> None:
    with pytest.raises(LockLost), client.lock("press", 30) as held:
        client.run(lambda inner: inner.store.unlock("press", held.holder))
    with pytest.raises(ZeroDivisionError), client.lock("press", 30):
        _ = 1 / 0

    with client.lock("press", 30, wait=0):
        pass


def test_the_event_of_a_claim_can_be_waited_for_in_a_thread(client: BlockingClient) -> None:
    client.enqueue("email")
    claim = client.claim("email")
    assert claim is not None
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(claim.cancelled.wait_sync)

        client.cancel(claim.job.id)

        assert waiting.result(5)


def test_an_interrupt_cancels_the_call_and_the_client_goes_on(client: BlockingClient) -> None:
    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    # whoever runs in the background of a shell has it ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, interrupt)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            client.claim("email", wait=60)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)

    client.enqueue("email")
    claim = client.claim("email")
    assert claim is not None
    assert claim.delivery == 1


def test_a_close_ends_calls_that_are_under_way() -> None:
    client = windlass.connect_sync("memory://")
    client.enqueue("email")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(client.claim, "other", wait=60)

        client.close()

        with pytest.raises(ClientClosed):
            waiting.result(5)


def test_a_client_that_is_dropped_ends_its_thread() -> None:
    client = windlass.connect_sync("memory://")
    client.enqueue("email")
    [thread] = [thread for thread in threading.enumerate() if thread.name == "windlass blocking client"]

    del client
    gc.collect()

    thread.join(5)
    assert not thread.is_alive()


def test_arguments_that_do_not_fit_are_refused_at_once(client: BlockingClient) -> None:
    wrong: dict[str, Any] = {"no_such_argument": 1}
    with pytest.raises(TypeError, match="no_such_argument"):
        client.schedules.put("nightly", "30 2 * * *", **wrong)


def test_a_program_may_end_without_a_close(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NEVER_CLOSED, f"sqlite:///{tmp_path}/jobs.db"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


# the warning of newer interpreters is about the very thing that is tested
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_gets_a_client_of_its_own(tmp_path: Path) -> None:
    with windlass.connect_sync(f"sqlite:///{tmp_path}/jobs.db") as client:
        client.enqueue("email", b"parent")
        child = os.fork()
        if child == 0:
            _enqueue_and_leave(client)

        _, status = os.waitpid(child, 0)

        client.enqueue("email", b"parent again")
        assert os.waitstatus_to_exitcode(status) == 0
        claims = client.claim_many("email", limit=10)
        assert [claim.job.payload for claim in claims] == [b"parent", b"child", b"parent again"]


def _enqueue_and_leave(client: BlockingClient) -> None:
    code = 1
    try:
        client.enqueue("email", b"child")
        client.close()
        code = 0
    finally:
        os._exit(code)


def test_work_on_a_connection_is_done_in_the_callers_thread(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with windlass.connect_sync(f"sqlite:///{path}") as client:
        client.open()
        connection = sqlite3.connect(path)
        connection.execute("begin immediate")

        done = client.enqueue("email", b"in my transaction", connection=connection)
        before = client.get(done.id)
        connection.commit()
        connection.close()

        assert before is None
        assert client.get(done.id) is not None


def test_an_error_on_a_connection_reaches_the_caller(client: BlockingClient) -> None:
    connection = sqlite3.connect(":memory:")

    with pytest.raises(NotTransactional):
        client.enqueue("email", connection=connection)
    with pytest.raises(InvalidValue):
        client.enqueue("email", connection="sqlite")

    connection.close()


def test_a_client_that_is_collected_never_blocks_the_thread_that_the_collector_came_by_in(tmp_path: Path) -> None:
    client = windlass.connect_sync(f"sqlite:///{tmp_path}/jobs.db")
    client.enqueue("email")
    door = os.open(tmp_path / "jobs.db-turn", os.O_RDWR)
    fcntl.flock(door, fcntl.LOCK_EX)  # as a writing thread of this process would hold it
    collecting = threading.Thread(target=gc.collect, daemon=True)

    cycle: list[object] = [client]
    cycle.append(cycle)
    del client, cycle
    collecting.start()
    collecting.join(10)

    assert not collecting.is_alive()
    os.close(door)
