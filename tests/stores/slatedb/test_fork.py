"""A process that forks while it has a store open: the child is told at once, and the parent goes on."""

import json
import subprocess
import sys
from pathlib import Path

# The child tries the store of its parent, and others; it leaves as any program does, with all that an interpreter
# tears down.
FORKING = """
import asyncio, json, os, sys, windlass

class Forked(BaseException):
    pass

async def forking(url):
    client = windlass.connect(url)
    await client.open()
    await client.enqueue("mine", b"before")
    child = os.fork()
    if child == 0:
        raise Forked(client)
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    await client.enqueue("mine", b"after")
    claims = [await client.claim("mine") for _ in range(2)]
    theirs = (await client.stats("theirs")).pending
    await client.close()
    print(json.dumps({"status": status, "mine": [claim.job.payload.decode() for claim in claims], "theirs": theirs}))

async def in_the_child(client, url):
    for store in (client, windlass.connect(url), windlass.connect(url + "?look=yes"), windlass.connect("slatedb+memory://x")):
        try:
            await store.enqueue("theirs")
        except windlass.StoreUnavailable as error:
            assert "forked" in str(error) and not error.retryable, error
        else:
            sys.exit("nothing was raised")
        await store.close()

loop = asyncio.new_event_loop()
try:
    loop.run_until_complete(forking(sys.argv[1]))
except Forked as forked:
    asyncio.run(in_the_child(forked.args[0], sys.argv[1]))
    sys.exit(0)
"""


def test_a_forked_child_is_told_that_the_store_belongs_to_its_parent(tmp_path: Path) -> None:
    # -W ignore: Python warns of every fork in a process with threads, which is what this is about
    command = [sys.executable, "-W", "ignore", "-c", FORKING, f"slatedb+file://{tmp_path}/jobs"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == {"status": 0, "mine": ["before", "after"], "theirs": 0}
