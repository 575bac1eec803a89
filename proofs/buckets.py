"""The object stores that a campaign can happen on: a folder, or a bucket of an S3 server that is its own."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from proofs.serving import Place
from tests.slatedb.s3 import CREDENTIALS
from tests.slatedb.weed import Weed

Kind: TypeAlias = Literal["file", "s3"]


@dataclass(frozen=True)
class Bucket:
    """A place on an object store, and the server that keeps the objects, where there is one."""

    place: Place
    server: Weed | None = None

    def kill_server(self) -> None:
        """Kill the server by SIGKILL; its objects stay."""
        assert self.server is not None
        self.server.kill()

    def start_server(self) -> None:
        """Start it again; return when it keeps what it is given."""
        assert self.server is not None
        self.server.start()


@contextmanager
def bucket_on(kind: Kind, folder: Path) -> Generator[Bucket]:
    """Give a store that nobody owns yet; what it leaves goes with the folder, or with the server."""
    ledger = folder / "ledger"
    if kind == "file":
        yield Bucket(Place(f"slatedb+file://{folder / 'store'}", ledger))
        return
    with Weed() as weed, admitted():
        yield Bucket(Place(weed.url("proof"), ledger), weed)


@contextmanager
def admitted() -> Generator[None]:
    """Let this process, and those that it starts, call the S3 servers of campaigns."""
    before = {name: os.environ.get(name) for name in CREDENTIALS}
    os.environ.update(CREDENTIALS)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
