"""A process that forks while it has a store open: parent and child go on, each with files or connections of its own.

On SlateDB the child is refused, since one process owns a store: `slatedb/test_fork.py` shows that. What becomes of the
connections of Postgres is shown in `postgres/test_connections.py`, below the store.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import windlass
from proofs.readers import sqlite as reader
from tests.each_store import new_url
from tests.redis.keys import new_prefix, with_options
from tests.redis.private import PrivateRedis
from windlass import JobFilter

# Each program forks while its store is open and a caller waits for news, works on both sides, and prints what each side
# did. `leave` is how the child ends: at once, or as any program does, with all that an interpreter tears down.
ASYNC = """
import asyncio, json, os, sys, windlass
from windlass.core.topics import queue_topic

async def work(client, name, rounds):
    done = []
    for number in range(rounds):
        await client.enqueue(name, b"x")
        claim = await client.claim(name, wait=5)
        await client.ack(claim)
        done.append(claim.job.id)
        await client.enqueue("left", name.encode())
    return done

async def in_the_child(client):
    done = await work(client, "child", rounds)
    await client.enqueue("from-child")
    assert len(done) == rounds
    await client.close()

class Forked(BaseException):
    pass

url, leave, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])

async def forking(url):
    client = windlass.connect(url)
    await client.open()
    await work(client, "before", 3)
    HOLD
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        LEAVE
        raise Forked(client, write)
    # its event loop is a copy of ours, and hears what we hear until it is left
    os.read(read, 1)
    mine = await work(client, "parent", rounds)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    mine += await work(client, "after", 3)
    HEAR
    await client.close()
    return {"status": status, "parent": len(mine), "heard": heard is not None}

loop = asyncio.new_event_loop()
try:
    print(json.dumps(loop.run_until_complete(forking(url))))
except Forked as forked:
    client, left = forked.args
    os.write(left, b"x")
    asyncio.run(in_the_child(client))
    if leave == "at once":
        os._exit(0)
    sys.exit(0)
"""
BLOCKING = """
import json, os, sys, windlass

def work(client, name, rounds):
    done = []
    for number in range(rounds):
        client.enqueue(name, b"x")
        claim = client.claim(name, wait=5)
        client.ack(claim)
        done.append(claim.job.id)
        client.enqueue("left", name.encode())
    return done

url, leave, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
client = windlass.connect_sync(url)
work(client, "before", 3)
child = os.fork()
if child == 0:
    assert len(work(client, "child", rounds)) == rounds
    client.enqueue("from-child")
    if leave == "at once":
        os._exit(0)
    client.close()
    sys.exit(0)
mine = work(client, "parent", rounds)
_, status = os.waitpid(child, 0)
mine += work(client, "after", 3)
heard = client.claim("from-child", wait=20)
client.close()
print(json.dumps({"status": status, "parent": len(mine), "heard": heard is not None}))
"""
ROUNDS: Final = {"sqlite": 30, "redis": 10, "http+sqlite": 10}
"""How many jobs each side brings and works: two processes that share a file meet each other more seldom."""
WAITING: Final = {
    "HOLD": """
    waiting = asyncio.create_task(client.claim("from-child", wait=20))
    await asyncio.sleep(0.05)
""",
    "LEAVE": """
        waiting.cancel()
""",
    "HEAR": """
    heard = await waiting
""",
}
"""What the parent does while it forks, where there are no connections: it waits for a job that the child brings."""
CONNECTED: Final = {
    "HOLD": """
    rung = asyncio.Event()
    stop = client.store.listen([queue_topic("from-child")], rung.set)
    # several connections that are idle, one that is in use, and one that hears
    await asyncio.gather(*(client.stats(f"q{number}") for number in range(5)))
    while not client.store._room.listener.connected:
        await asyncio.sleep(0.01)
    connections = CONNECTIONS
    lent = await connections.take(asyncio.get_running_loop().time() + 20)
    rung.clear()
""",
    "LEAVE": "",
    "HEAR": """
    ANSWER
    connections.give(lent)
    async with asyncio.timeout(20):
        await rung.wait()
    stop()
    heard = await client.claim("from-child")
""",
}
"""The same where there are: it hears of that job, and has a connection in use."""
HELD: Final[dict[str, dict[str, str]]] = {
    "sqlite": WAITING,
    "redis": CONNECTED
    | {"CONNECTIONS": "next(iter(client.store._room.runner._connections.values()))"}
    | {"ANSWER": 'assert await lent.ask("ECHO", "mine") == b"mine"'},
    "http+sqlite": CONNECTED
    | {"CONNECTIONS": "client.store._room.runner._connections", "ANSWER": "assert not lent.broken"},
}


@pytest.fixture(scope="module")
def redis() -> Iterator[PrivateRedis]:
    with PrivateRedis(conf={"appendonly": "yes"}) as redis:
        yield redis


@pytest.fixture(params=ROUNDS)
def store(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def url(request: pytest.FixtureRequest, store: str) -> Iterator[str]:
    if store == "redis":
        redis: PrivateRedis = request.getfixturevalue("redis")
        yield with_options(redis.url, f"prefix={new_prefix()}")
        return
    with new_url(store) as url:
        yield url


@pytest.mark.parametrize("leave", ["at once", "as usual"])
@pytest.mark.parametrize("program", [ASYNC, BLOCKING], ids=["async", "blocking"])
async def test_a_forked_child_uses_the_store_of_its_parent_while_the_parent_goes_on(
    store: str, url: str, program: str, leave: str
) -> None:
    rounds = ROUNDS[store]
    for name, code in HELD[store].items():
        program = program.replace(name, code.strip())
    # -W ignore: Python warns of every fork in a process with threads, which is what this is about
    command = [sys.executable, "-W", "ignore", "-c", program, url, leave, str(rounds)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: ASYNC221

    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == {"status": 0, "parent": rounds + 3, "heard": True}
    async with windlass.connect(url) as client:
        left = [job.payload for job in await client.jobs(JobFilter(queue="left"), limit=1000)]
        totals = (await client.stats()).totals
    assert {name: left.count(name) for name in left} == {
        b"before": 3,
        b"parent": rounds,
        b"after": 3,
        b"child": rounds,
    }
    assert (totals.succeeded, totals.rescued) == (2 * rounds + 6, 0)
    if store == "sqlite":
        path = Path(url.removeprefix("sqlite:///"))
        assert reader.integrity(path) == []
        assert reader.counts_off(path) == []
