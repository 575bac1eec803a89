"""Servers in processes of their own, and what all campaigns against them have in common."""

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import windlass
from proofs.children import eventually, state_of
from proofs.ledger import Entry, Ledger
from proofs.readers.postgres import PostgresReader
from proofs.readers.redis import RedisReader
from proofs.readers.redis_cluster import RedisClusterReader
from proofs.readers.sqlite import FleetReader, Reader, SqliteReader
from proofs.readers.sqlite_fleet import SqliteFleetReader
from proofs.report import Report
from windlass import App, NewJob, Server, ServerConfig

QUEUE = "default"
SQLITE = "sqlite:///"


class Place(NamedTuple):
    """Where a campaign happens: its store, and the ledger beside it."""

    url: str
    ledger: Path
    file: Path | None = None
    """The file behind a URL that is not a file's."""
    direct: str | None = None
    """The URL by which the second reader comes, where it is another one."""

    @classmethod
    def within(cls, folder: Path) -> "Place":
        return cls(f"{SQLITE}{folder / 'jobs.db'}", folder / "ledger")

    @property
    def database(self) -> Path:
        """The file, where the store is one."""
        return self.file or Path(self.url.removeprefix(SQLITE))

    @property
    def reader(self) -> Reader:
        return SqliteReader(self.database) if self.url.startswith(SQLITE) else self.fleet_reader

    @property
    def fleet_reader(self) -> FleetReader:
        """The reader, where the store is reached by a URL that is not a file's."""
        if self.file is not None:
            return SqliteFleetReader(self.file)
        if self.url.startswith("slatedb"):
            # loaded when it is wanted: how much memory a server takes is looked at too
            reader: FleetReader = import_module("proofs.readers.slatedb").SlateReader(self.url)
            return reader
        if self.url.startswith("redis+cluster"):
            return RedisClusterReader(self.url)
        return RedisReader(self.url) if self.url.startswith("redis") else PostgresReader(self.direct or self.url)


def new_job(kind: str, seconds: float) -> NewJob:
    return NewJob(QUEUE, {"seconds": round(seconds, 6)}, kind=kind)


def enqueue(place: Place, jobs: Sequence[NewJob], *, max_attempts: int = 3) -> list[str]:
    """Put `jobs` in line and return their ids: from here on none may be lost."""

    async def bring() -> list[str]:
        async with windlass.connect(place.url, max_attempts=max_attempts) as client:
            return [done.id for done in await client.enqueue_many(jobs)]

    return asyncio.run(bring())


def served_app(place: Place, process: str) -> App:
    """Import the app of the campaigns, once in a process."""
    os.environ.update(PROOF_STORE=place.url, PROOF_LEDGER=str(place.ledger), PROOF_PROCESS=process)
    # that jobs are taken back is what most campaigns are about
    logging.getLogger("windlass").setLevel(logging.ERROR)
    app: App = import_module("proofs.served").app
    return app


async def serve(ledger: Ledger, place: Place, config: ServerConfig) -> None:
    """Run a server until it is killed, or stopped gracefully by SIGTERM."""
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    app = served_app(place, ledger.process)
    async with app, Server(app, config):
        await told.wait()


async def serve_until_done(server: Server, place: Place) -> None:
    """Let a server work until nothing is left."""
    async with server:
        while place.reader.unfinished():  # noqa: ASYNC110 - a reader that nobody tells anything
            await asyncio.sleep(0.05)


def key(entry: Entry) -> tuple[str, int]:
    return entry.job, entry.delivery


def begun_and_not_ended(entries: Iterable[Entry]) -> dict[tuple[str, int], Entry]:
    """Return the attempts that something cut short, by job and delivery."""
    begun: dict[tuple[str, int], Entry] = {}
    for entry in entries:
        if entry.event == "begun":
            begun[key(entry)] = entry
        elif entry.event == "ended":
            begun.pop(key(entry), None)
    return begun


def ended(entries: Iterable[Entry]) -> set[tuple[str, int]]:
    """Return the attempts that came to their end."""
    return {key(entry) for entry in entries if entry.event == "ended"}


def check_ends(report: Report, place: Place, ids: Sequence[str], done: set[tuple[str, int]]) -> None:
    """Every job is there, and has succeeded by a delivery whose work is known to be `done`."""
    rows = place.reader.jobs()
    report.never("lost: enqueued and not in the store", set(ids) - rows.keys())
    report.never("unexpected: in the store and never enqueued", rows.keys() - set(ids))
    report.never("not finished", [row for row in rows.values() if row.finished_at is None])
    report.never("dead or cancelled", [row for row in rows.values() if row.state in ("dead", "cancelled")])
    report.never(
        "succeeded, and its work was not done",
        [row for row in rows.values() if row.state == "succeeded" and (row.id, row.delivery) not in done],
    )


def check_store(report: Report, place: Place | Sequence[Place], entries: list[Entry], *, kills: int) -> None:
    """The store is whole, and nothing of the servers is left behind."""
    readers = [each.reader for each in ([place] if isinstance(place, Place) else place)]
    report.never("queues whose counts are off", [off for each in readers for off in each.counts_off()])
    report.never("complaints about the store's integrity", [said for each in readers for said in each.integrity()])
    report.never("servers still registered", [server for each in readers for server in _registered(each, kills)])
    report.never("files or sessions of servers left behind", [left for each in readers for left in each.left_behind()])
    pids = [entry.count for entry in entries if entry.event == "started"]
    eventually(lambda: not any(map(lives, pids)), 10)
    report.never("processes that outlived their server", [pid for pid in pids if lives(pid)])
    torn = [entry.note for entry in entries if entry.event == "torn"]
    report.never("lines of the ledger torn by anything but a kill", torn[kills:])
    report.never("errors that reached a caller", [entry.note for entry in entries if entry.event == "error"])


def _registered(reader: Reader, kills: int) -> list[str]:
    """Return the servers that should not be registered; of a killed one only a file has proof that it is dead."""
    servers = reader.servers()
    return servers if isinstance(reader, SqliteReader) else servers[kills:]


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked for does not."""
    return state_of(pid) not in "ZX"


def figure_attempts(report: Report, entries: list[Entry]) -> None:
    """Say where attempts ran, and how many jobs ran more than once."""
    begun = [entry for entry in entries if entry.event == "begun"]
    for note, count in sorted(Counter(entry.note for entry in begun).items()):
        report.figure(f"attempts begun: {note}", count)
    again = Counter(entry.job for entry in begun)
    report.figure("jobs begun more than once", sum(count > 1 for count in again.values()))
