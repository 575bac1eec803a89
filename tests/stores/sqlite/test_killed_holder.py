"""What a process held when it was killed: nobody has to clean up after it."""

import asyncio
import subprocess
import sys

import pytest

from windlass import Client, Unique

KEY = Unique("k", until="finished")
# takes a lock and a job with a key, says so, and waits to be killed
HOLDER = """
import asyncio, sys
import windlass

async def hold(url):
    async with windlass.connect(url) as client, client.lock("l", 1):
        assert await client.claim("email", lease=0.5) is not None
        print("holds", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold(sys.argv[1]))
"""


async def test_the_lock_and_the_key_of_a_killed_process_come_free(client: Client, url: str) -> None:
    """The lock with its time, the key with the end of its job, which somebody else brings about."""
    first = await client.enqueue("email", b"", unique=KEY)
    with subprocess.Popen(  # noqa: ASYNC220 - it is waited for in a thread
        [sys.executable, "-W", "ignore", "-c", HOLDER, url], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None
            assert await asyncio.to_thread(holder.stdout.readline) == "holds\n"
            with pytest.raises(TimeoutError):
                async with client.lock("l", 1, wait=0):
                    pass
        finally:
            holder.kill()

    # its lease was shorter than its lock
    async with client.lock("l", 1, wait=10):
        assert await client.enqueue("email", b"", unique=KEY) == (first.id, False)
    assert await client.rescue() == 1
    claim = await client.claim("email")
    assert claim is not None
    assert claim.job.id == first.id
    await client.ack(claim)
    assert (await client.enqueue("email", b"", unique=KEY)).created
