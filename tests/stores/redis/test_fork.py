"""A process that forks while it has a store open: parent and child go on, each with connections of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

import windlass
from tests.redis.keys import new_prefix, with_options
from tests.redis.private import PrivateRedis
from windlass import JobFilter

# Each program forks while its store is open and somebody waits for news, works on both sides, and prints what each side
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
    done = await work(client, "child", 10)
    await client.enqueue("from-child")
    assert len(done) == 10
    await client.close()

class Forked(BaseException):
    pass

url, leave = sys.argv[1:]

async def forking(url):
    client = windlass.connect(url)
    await client.open()
    await work(client, "before", 3)
    rung = asyncio.Event()
    stop = client.store.listen([queue_topic("from-child")], rung.set)
    # several connections that are idle, one that somebody has, and one that hears
    await asyncio.gather(*(client.stats(f"q{number}") for number in range(5)))
    while not client.store._room.listener.connected:
        await asyncio.sleep(0.01)
    [connections] = client.store._room.runner._connections.values()
    lent = await connections.take(asyncio.get_running_loop().time() + 20)
    rung.clear()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        raise Forked(client, write)
    # its event loop is a copy of ours, and hears what we hear until it is left
    os.read(read, 1)
    mine = await work(client, "parent", 10)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    mine += await work(client, "after", 3)
    assert await lent.ask("ECHO", "mine") == b"mine"
    connections.give(lent)
    async with asyncio.timeout(20):
        await rung.wait()
    stop()
    heard = await client.claim("from-child")
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

url, leave = sys.argv[1:]
client = windlass.connect_sync(url)
work(client, "before", 3)
child = os.fork()
if child == 0:
    assert len(work(client, "child", 10)) == 10
    client.enqueue("from-child")
    if leave == "at once":
        os._exit(0)
    client.close()
    sys.exit(0)
mine = work(client, "parent", 10)
_, status = os.waitpid(child, 0)
mine += work(client, "after", 3)
heard = client.claim("from-child", wait=20)
client.close()
print(json.dumps({"status": status, "parent": len(mine), "heard": heard is not None}))
"""


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    with PrivateRedis(conf={"appendonly": "yes"}) as private:
        yield private


@pytest.mark.parametrize("leave", ["at once", "as usual"])
@pytest.mark.parametrize("program", [ASYNC, BLOCKING], ids=["async", "blocking"])
async def test_a_forked_child_uses_the_store_of_its_parent_while_the_parent_goes_on(
    private: PrivateRedis, program: str, leave: str
) -> None:
    url = with_options(private.url, f"prefix={new_prefix()}")
    # -W ignore: Python warns of every fork in a process with threads, which is what this is about
    command = [sys.executable, "-W", "ignore", "-c", program, url, leave]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: ASYNC221

    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == {"status": 0, "parent": 13, "heard": True}
    async with windlass.connect(url) as client:
        left = [job.payload for job in await client.jobs(JobFilter(queue="left"), limit=1000)]
        stats = await client.stats()
    assert {name: left.count(name) for name in left} == {b"before": 3, b"parent": 10, b"after": 3, b"child": 10}
    assert (stats.totals.succeeded, stats.totals.rescued) == (26, 0)
