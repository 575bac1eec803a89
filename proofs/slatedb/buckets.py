"""The object stores that a campaign can happen on: a folder, or a bucket of an S3 server of its own, near or far."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from proofs.serving import Place
from proofs.slatedb.faulty_s3 import FaultyS3
from proofs.slatedb.s3_faults import Faults
from tests.slatedb.s3 import BUCKET, CREDENTIALS
from tests.slatedb.weed import Weed

Kind: TypeAlias = Literal["file", "s3"]


@dataclass(frozen=True)
class Bucket:
    """A place on an object store, the same seen from nearby, and the server of the objects, where there is one."""

    place: Place
    nearby: Place
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
def bucket_on(kind: Kind, folder: Path, *, away: float = 0.0) -> Generator[Bucket]:
    """Give a store that nobody owns yet; what it leaves goes with the folder, or with the server.

    A bucket may be so many seconds away, each way.
    """
    ledger = folder / "ledger"
    if kind == "file":
        place = Place(f"slatedb+file://{folder / 'store'}", ledger)
        yield Bucket(place, place)
        return
    with Weed() as weed, admitted():
        nearby = Place(weed.url("proof"), ledger)
        if not away:
            yield Bucket(nearby, nearby, weed)
            return
        with FaultyS3(weed.endpoint, Faults(share=0.0, latency=away)) as line:
            yield Bucket(Place(f"slatedb+s3://{BUCKET}/proof?endpoint={line.endpoint}", ledger), nearby, weed)


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
