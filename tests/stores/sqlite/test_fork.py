"""A process that forks while it has a store open: parent and child go on, each with files of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from proofs.readers import sqlite as reader

# Each program forks while its store is open, works on both sides, and prints what each side did. `leave` is how the
# child ends: at once, or as any program does, with all that an interpreter tears down.
ASYNC = """
import asyncio, json, os, sys, windlass

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
    done = await work(client, "child", 30)
    await client.enqueue("from-child")
    assert len(done) == 30
    await client.close()

class Forked(BaseException):
    pass

url, leave = sys.argv[1:]

async def forking(url):
    client = windlass.connect(url)
    await client.open()
    await work(client, "before", 3)
    waiting = asyncio.create_task(client.claim("from-child", wait=20))
    await asyncio.sleep(0.05)
    child = os.fork()
    if child == 0:
        waiting.cancel()
        raise Forked(client)
    mine = await work(client, "parent", 30)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    mine += await work(client, "after", 3)
    heard = await waiting
    await client.close()
    return {"status": status, "parent": len(mine), "heard": heard is not None}

loop = asyncio.new_event_loop()
try:
    print(json.dumps(loop.run_until_complete(forking(url))))
except Forked as forked:
    asyncio.run(in_the_child(forked.args[0]))
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
    assert len(work(client, "child", 30)) == 30
    client.enqueue("from-child")
    if leave == "at once":
        os._exit(0)
    client.close()
    sys.exit(0)
mine = work(client, "parent", 30)
_, status = os.waitpid(child, 0)
mine += work(client, "after", 3)
heard = client.claim("from-child", wait=20)
client.close()
print(json.dumps({"status": status, "parent": len(mine), "heard": heard is not None}))
"""


@pytest.mark.parametrize("leave", ["at once", "as usual"])
@pytest.mark.parametrize("program", [ASYNC, BLOCKING], ids=["async", "blocking"])
def test_a_forked_child_uses_the_store_of_its_parent_while_the_parent_goes_on(
    path: Path, url: str, program: str, leave: str
) -> None:
    # -W ignore: Python warns of every fork in a process with threads, which is what this is about
    command = [sys.executable, "-W", "ignore", "-c", program, url, leave]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"status": 0, "parent": 33, "heard": True}
    left = [row.payload for row in reader.jobs(path).values() if row.queue == "left"]
    assert {name: left.count(name) for name in left} == {b"before": 3, b"parent": 30, b"after": 3, b"child": 30}
    assert reader.integrity(path) == []
    assert reader.counts_off(path) == []
