"""Writes the files of this folder: each store as commit 04839a3 writes it, and what could be read of it.

It is to be run with the code, the tests' servers and the environment of that commit. It is the last one before the
schemas changed.

    git worktree add --detach ../old 04839a3
    make -C ../old .venv/.ready-check
    cd ../old
    PYTHONPATH=.:../windlass .venv/bin/python -m tests.upgrade.write
"""

import asyncio
import gzip
import json

import windlass
from tests.each_store import new_url
from tests.upgrade.old_store import YEAR, contents, fill
from tests.upgrade.store_files import FILES, read_path, save
from windlass.testing import FakeClock, SeededRng


async def write(store: str, url: str) -> None:
    """Fill the empty store at `url`, and write what can be read of it."""
    clock = FakeClock()
    start = clock.now()
    client = windlass.connect(url, clock=clock, rng=SeededRng(), keep_succeeded=YEAR, keep_dead=YEAR, worker="w-1")
    async with client:
        tokens = await fill(client, clock)
        found = {"tokens": tokens, "contents": await contents(client.store, start)}
    text = json.dumps(found, indent=1, sort_keys=True)
    read_path(store).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main() -> None:
    """Write all files."""
    for store in FILES:
        with new_url(store) as url:
            asyncio.run(write(store, url))
            save(store, url)


if __name__ == "__main__":
    main()
