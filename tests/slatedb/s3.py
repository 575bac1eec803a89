"""The S3 of a test process: one server in a thread for all tests, a prefix for each.

It is started when it is first asked for, and ends with the process.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Final, NamedTuple

from tests.slatedb.bucket import Bucket
from tests.slatedb.s3_server import KEY, S3Server

BUCKET: Final = "windlass"
CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": "not-secret", "AWS_REGION": "us-east-1"}
"""What the environment of a process holds that may call."""
THREAD: Final = "S3 server"
_PATIENCE: Final = 30.0
_prefixes: Final = count(1)


class Running(NamedTuple):
    """A server, and where it listens."""

    server: S3Server
    endpoint: str

    @property
    def bucket(self) -> Bucket:
        """The one that all tests share."""
        return self.server.buckets[BUCKET]


@contextmanager
def new_bucket_url(**options: str) -> Generator[str]:
    """Give the URL of a store that is not there yet; in the end all that it has left is removed."""
    prefix = f"test-{next(_prefixes)}"
    more = "".join(f"&{name}={value}" for name, value in options.items())
    try:
        yield f"slatedb+s3://{BUCKET}/{prefix}?endpoint={running().endpoint}{more}"
    finally:
        objects = running().bucket.objects
        for key in [*objects]:
            if key.startswith(f"{prefix}/"):
                objects.pop(key, None)


@cache
def running() -> Running:
    """Return the server of this process; it is started when nobody has asked before."""
    server, loop = S3Server(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name=THREAD, daemon=True)
    thread.start()
    port = asyncio.run_coroutine_threadsafe(server.start(), loop).result(_PATIENCE)
    server.buckets[BUCKET] = Bucket()
    os.environ.update(CREDENTIALS)
    atexit.register(_stop, server, loop, thread)
    return Running(server, f"http://127.0.0.1:{port}")


def _stop(server: S3Server, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(_PATIENCE)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(_PATIENCE)
    loop.close()
