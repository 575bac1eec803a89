"""A few connections for many callers: who gets which, what is never given out again, and how long anybody waits."""

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable

import asyncpg
import pytest

from tests.postgres.cluster import cluster, dsn_of
from tests.postgres.private import PrivateCluster
from tests.postgres.proxy import Proxy
from tests.stores.postgres.shell import end_sessions, options_of, use_statements
from windlass import ClientClosed, StoreUnavailable
from windlass.kit import connections as module
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import Session
from windlass.stores.postgres.work import Parameters


@pytest.fixture(autouse=True)
def statements(monkeypatch: pytest.MonkeyPatch) -> None:
    use_statements(monkeypatch)


@pytest.fixture
async def connections(schema: str) -> AsyncIterator[Connections]:
    connections = Connections(options_of(schema, connections=3))
    yield connections
    await connections.close()


def soon(seconds: float = 20.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def pid_of(connections: Connections) -> int:
    async with connections.session(soon()) as session:
        return session.pid


async def eventually(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not what():  # noqa: ASYNC110 - what other processes do signals no event here
            await asyncio.sleep(0.01)


async def fail(connections: Connections, name: str, parameters: Parameters) -> None:
    async with connections.session(soon()) as session:
        await session.fetch(name, parameters)


async def test_nothing_is_opened_before_it_is_needed_and_one_serves_many_in_turn(connections: Connections) -> None:
    before = cluster().sessions()

    pids = {await pid_of(connections) for _ in range(5)}

    assert cluster().sessions() - before == pids
    assert len(pids) == 1


async def test_the_session_that_was_used_last_is_given_out_first(connections: Connections) -> None:
    first, second = await connections.take(soon()), await connections.take(soon())
    connections.give(first)
    connections.give(second)

    assert await pid_of(connections) == second.pid


async def test_whoever_steps_aside_leaves_that_one_to_others_unless_it_is_alone(
    connections: Connections,
) -> None:
    first, second, third = [await connections.take(soon()) for _ in range(3)]
    connections.give(first)
    alone = await connections.take(soon(), aside=True)
    for session in (first, second, third):
        connections.give(session)

    async with connections.session(soon(), aside=True) as session:
        assert session is second

    assert alone is first


async def test_who_has_to_wait_is_served_in_turn(connections: Connections) -> None:
    taken = [await connections.take(soon()) for _ in range(3)]
    served: list[int] = []

    async def wait(number: int) -> None:
        async with connections.session(soon()):
            served.append(number)

    waiting = [asyncio.create_task(wait(number)) for number in range(6)]
    await asyncio.sleep(0)
    for session in taken:
        connections.give(session)
    await asyncio.gather(*waiting)

    assert served == list(range(6))


async def test_who_waits_until_the_deadline_is_told_which_option_helps(connections: Connections) -> None:
    taken = [await connections.take(soon()) for _ in range(3)]

    with pytest.raises(StoreUnavailable, match=r"all 3 connections .* \?connections=") as told:
        await connections.take(soon(0.05))
    for session in taken:
        connections.give(session)

    assert told.value.retryable


async def test_a_caller_who_stops_waiting_takes_nobodys_turn(connections: Connections) -> None:
    taken = [await connections.take(soon()) for _ in range(3)]
    gone, stays = asyncio.create_task(connections.take(soon())), asyncio.create_task(connections.take(soon()))
    await asyncio.sleep(0)

    gone.cancel()
    connections.give(taken.pop())

    connections.give(await stays)
    for session in taken:
        connections.give(session)


async def test_a_session_whose_statement_the_server_refused_is_used_again(connections: Connections) -> None:
    pid = await pid_of(connections)

    with pytest.raises(asyncpg.DivisionByZeroError):
        await fail(connections, "divide", {"by": 0})

    assert await pid_of(connections) == pid


async def test_a_session_in_an_open_transaction_is_not_used_again(connections: Connections) -> None:
    async with connections.session(soon()) as session:
        await session.begin()

    assert session.closed
    assert await pid_of(connections) != session.pid


async def test_a_caller_who_was_cancelled_leaves_no_answer_to_the_next(connections: Connections) -> None:
    chance = random.Random(5)
    answers: list[tuple[str, str]] = []

    async def echo(text: str) -> None:
        async with connections.session(soon(60)) as session:
            [(answer,)] = await session.fetch("echo", {"text": text})
            answers.append((text, answer))

    for number in range(150):
        calls = [asyncio.create_task(echo(f"{number}-{call}")) for call in range(4)]
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        for call in calls[:2]:
            call.cancel()
        await asyncio.wait(calls)

    assert len(answers) >= 300
    assert all(text == answer for text, answer in answers)


async def test_a_cancelled_call_frees_its_place(connections: Connections) -> None:
    for _ in range(7):
        call = asyncio.create_task(fail(connections, "sleep", {"seconds": 60.0}))
        await eventually(lambda: bool(cluster().busy_sessions()))
        call.cancel()
        await asyncio.wait({call})

    assert await pid_of(connections)


async def test_after_a_lost_connection_the_older_idle_ones_are_dropped_too(connections: Connections) -> None:
    older, lost, newer = [await connections.take(soon()) for _ in range(3)]
    connections.give(older)
    connections.give(newer)

    connections.give(lost, ConnectionResetError())

    assert [session.closed for session in (older, lost, newer)] == [True, True, False]
    assert await pid_of(connections) == newer.pid


async def test_an_older_session_in_use_is_not_used_again_after_a_loss(connections: Connections) -> None:
    older, lost = [await connections.take(soon()) for _ in range(2)]
    connections.give(lost, TimeoutError())

    connections.give(older)

    assert older.closed


@pytest.mark.parametrize("code", ["25006", "26000", "57P01"])
async def test_a_session_that_no_longer_fits_the_server_is_dropped(connections: Connections, code: str) -> None:
    async with connections.session(soon()) as session:
        pass

    taken = await connections.take(soon())
    connections.give(taken, asyncpg.PostgresError.new({"C": code, "M": "says the server"}))

    assert session is taken
    assert session.closed


async def test_a_session_that_was_told_of_refused_writes_is_dropped_with_the_older_ones(
    connections: Connections,
) -> None:
    older, told = [await connections.take(soon()) for _ in range(2)]
    await told.connection.execute("set default_transaction_read_only = on")
    connections.give(older)

    connections.give(told)

    assert (older.closed, told.closed) == (True, True)


async def test_sessions_that_the_server_has_ended_while_idle_are_noticed(connections: Connections) -> None:
    taken = [await connections.take(soon()) for _ in range(3)]
    pids = {session.pid for session in taken}
    for session in taken:
        connections.give(session)
    end_sessions(cluster(), pids)
    await eventually(lambda: all(session.closed for session in taken))

    assert await pid_of(connections) not in pids


async def test_who_calls_while_the_server_restarts_waits_for_it() -> None:
    with PrivateCluster() as server:
        connections = Connections(Options(server.url))
        await pid_of(connections)
        server.stop("immediate")

        waiting = asyncio.create_task(pid_of(connections))
        await asyncio.to_thread(server.start)
        pid = await waiting
        await connections.close()

    assert pid


async def test_who_calls_while_there_is_no_server_is_told_at_the_deadline() -> None:
    connections = Connections(Options("postgresql://postgres@127.0.0.1:1/app"))
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match=r"nothing listens for database app at 127\.0\.0\.1:1") as told:
        await connections.take(soon(0.4))

    assert told.value.retryable
    assert 0.3 < time.monotonic() - began < 5


async def test_a_server_that_never_answers_is_given_up_at_the_deadline(schema: str) -> None:
    async with Proxy(dsn_of(schema)) as proxy:
        proxy.hold()
        connections = Connections(Options(proxy.url))

        with pytest.raises(StoreUnavailable, match="did not answer in time") as told:
            await connections.take(soon(0.3))

    assert told.value.retryable


async def test_what_cannot_get_better_by_waiting_is_told_at_once(schema: str) -> None:
    connections = Connections(Options(dsn_of(schema).replace("/of_", "/no_such_")))

    with pytest.raises(StoreUnavailable, match="create the database") as told:
        await asyncio.wait_for(connections.take(soon(600)), 10)

    assert not told.value.retryable


async def test_a_full_server_is_waited_for() -> None:
    with PrivateCluster(conf={"max_connections": "2", "superuser_reserved_connections": "0"}) as server:
        options = Options(server.url, connections=3)
        connections = Connections(options)
        taken = [await connections.take(soon()) for _ in range(2)]
        with pytest.raises(StoreUnavailable, match=r"\?connections="):
            await connections.take(soon(0.3))

        waiting = asyncio.create_task(connections.take(soon()))
        await asyncio.sleep(0)
        # one that is given back is as good as a new one
        connections.give(taken.pop())
        taken.append(await waiting)
        for session in taken:
            connections.give(session)
        await connections.close()


async def test_idle_sessions_are_closed_after_a_while_but_for_one(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_IDLE_FOR", 0.02)
    taken = [await connections.take(soon()) for _ in range(3)]

    for session in taken:
        connections.give(session)

    await eventually(lambda: [session.closed for session in taken] == [True, True, False])
    assert await pid_of(connections) == taken[-1].pid


async def test_close_waits_for_the_calls_under_way(connections: Connections) -> None:
    session = await connections.take(soon())

    closing = asyncio.create_task(connections.close())
    await asyncio.sleep(0)
    rows = await session.fetch("echo", {"text": "done"})
    connections.give(session)
    await closing

    assert [tuple(row) for row in rows] == [("done",)]
    assert session.closed


async def test_close_cuts_off_calls_that_do_not_end(connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CLOSE_WITHIN", 0.02)
    session = await connections.take(soon())

    await connections.close()

    assert session.closed


async def test_after_close_nothing_is_given_out(connections: Connections) -> None:
    taken = [await connections.take(soon()) for _ in range(3)]
    waiting = asyncio.create_task(connections.take(soon()))
    await asyncio.sleep(0)
    closing = asyncio.create_task(connections.close())
    await asyncio.sleep(0)

    for session in taken:
        connections.give(session)
    await closing

    with pytest.raises(ClientClosed):
        await waiting
    with pytest.raises(ClientClosed):
        await connections.take(soon())


async def test_a_session_that_was_opened_too_late_for_the_close_is_closed(connections: Connections) -> None:
    before = cluster().sessions()
    opening = asyncio.create_task(connections.take(soon()))
    await asyncio.sleep(0)

    await connections.close()

    with pytest.raises(ClientClosed):
        await opening
    await eventually(lambda: cluster().sessions() <= before)


FORKING = """
import asyncio, json, os, sys, warnings
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.options import Options

warnings.simplefilter("ignore", ResourceWarning)
options = Options(sys.argv[1])

async def pid(connections):
    loop = asyncio.get_running_loop()
    async with connections.session(loop.time() + 20) as session:
        [(pid, _, _)] = await session.fetch("probe")
        assert pid == session.pid
        return pid

class Forked(BaseException):
    pass

async def forking():
    connections = Connections(options)
    lent = await connections.take(asyncio.get_running_loop().time() + 20)
    before = await pid(connections)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        raise Forked(connections, write)
    os.close(write)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    after, still = await pid(connections), (await lent.fetch("probe"))[0][0] == lent.pid
    connections.give(lent)
    await connections.close()
    pids = {"child": int(os.read(read, 100)), "before": before}
    return {"status": status, "same": before == after, "still": still} | pids

async def in_the_child(connections, write):
    os.write(write, str(await pid(connections)).encode())
    await connections.close()

loop = asyncio.new_event_loop()
try:
    print(json.dumps(loop.run_until_complete(forking())))
except Forked as forked:
    asyncio.run(in_the_child(*forked.args))
"""


async def test_a_forked_child_leaves_the_parents_connections_alone(schema: str) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", FORKING, dsn_of(schema)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    child, before = found.pop("child"), found.pop("before")
    assert found == {"status": 0, "same": True, "still": True}
    assert child != before


async def test_a_session_is_lent_to_one_caller_at_a_time(connections: Connections) -> None:
    holders: dict[Session, int] = {}

    async def use(number: int) -> None:
        async with connections.session(soon()) as session:
            assert session not in holders
            holders[session] = number
            await session.fetch("echo", {"text": "x"})
            assert holders.pop(session) == number

    await asyncio.gather(*(use(number) for number in range(100)))
