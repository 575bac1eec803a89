"""`windlass servers`: who works on the store."""

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import click

from windlass.cli.options import output_options, store_argument, store_options
from windlass.cli.output import BAD, FAINT, GOOD, POOR, STRONG, Cell, note, print_json, print_table, room
from windlass.cli.reach import Choice, dead_after, looked_at, settings_of
from windlass.cli.times import distance, length
from windlass.client.server_details import Presence, presence
from windlass.core.looks import SERVES, ServerRecord

HEADS: Final = ("NAME", "HOST", "PID", "STATE", "RUNNING", "QUEUES", "KINDS", "UP", "SEEN", "VERSION")
NARROW_HEADS: Final = ("NAME", "STATE", "RUNNING", "QUEUES", "UP", "VERSION")
WIDE: Final = 140
_STYLES: Final = {"live": GOOD, "stopping": POOR, "silent": POOR, "gone": BAD}


class Seen(NamedTuple):
    """The servers, and after which silence one is not live."""

    now: datetime
    servers: list[ServerRecord]
    dead_after: timedelta

    def presence(self, server: ServerRecord) -> Presence:
        """Return whether a server is there."""
        return presence(server, self.now, self.dead_after)


@click.command()
@store_argument
@store_options
@output_options
def servers(*, app: str | None, url: str | None, as_json: bool) -> None:
    """List the processes that work on the store.

    `live` was heard of within dead-after (1 minute by default); `stopping` too, and it claims no more and waits for
    what it runs; `silent` was not, and has not left; `gone` has been silent for ten times as long.
    """
    seen = asyncio.run(_look(Choice(app, url)))
    if as_json:
        print_json({"servers": [_document(seen, each) for each in seen.servers]})
    elif not seen.servers:
        note("no server is known here: `windlass worker` starts one")
    elif room() < WIDE:
        rows = [_narrow_row(seen, each) for each in seen.servers]
        print_table(NARROW_HEADS, rows, folds=["NAME", "QUEUES"], numbers=["RUNNING"])
    else:
        rows = [_row(seen, each) for each in seen.servers]
        print_table(HEADS, rows, folds=["NAME", "QUEUES", "KINDS"], numbers=["RUNNING", "PID"])


async def _look(choice: Choice) -> Seen:
    async with looked_at(choice) as found:
        gone = dead_after(settings_of(choice, found))
        # the time of the store, which stamps when a server was seen
        now, _ = await found.client.store.schedules(())
        servers = await found.client.store.servers()
        return Seen(now, sorted(servers, key=lambda each: (each.name, each.started_at)), gone)


def _row(seen: Seen, server: ServerRecord) -> list[Cell]:
    return [
        Cell(server.name, STRONG),
        Cell(server.host),
        Cell(str(server.pid)),
        _state(seen, server),
        Cell(f"{server.running:,}"),
        Cell(_queues(server)),
        Cell(", ".join(server.kinds)),
        Cell(length(max(seen.now - server.started_at, timedelta()))),
        Cell(distance(server.seen_at, seen.now), FAINT),
        Cell(server.version),
    ]


def _narrow_row(seen: Seen, server: ServerRecord) -> list[Cell]:
    state = _state(seen, server)
    return [
        Cell(server.name, STRONG, below=f"{server.host}:{server.pid}"),
        Cell(state.text, state.style, below="" if state.text == "live" else distance(server.seen_at, seen.now)),
        Cell(f"{server.running:,}"),
        Cell(_queues(server), below=f"{len(server.kinds)} kind{'s' * (len(server.kinds) != 1)}"),
        Cell(length(max(seen.now - server.started_at, timedelta()))),
        Cell(server.version),
    ]


def _state(seen: Seen, server: ServerRecord) -> Cell:
    word = seen.presence(server)
    return Cell(word, _STYLES[word])


def _queues(server: ServerRecord) -> str:
    if SERVES in server.details:
        return f"(serves {server.details[SERVES]})"
    return ", ".join(server.queues)


def _document(seen: Seen, server: ServerRecord) -> dict[str, Any]:
    return {
        "id": server.id,
        "name": server.name,
        "host": server.host,
        "pid": server.pid,
        "version": server.version,
        "state": seen.presence(server),
        "started_at": server.started_at,
        "seen_at": server.seen_at,
        "queues": list(server.queues),
        "kinds": list(server.kinds),
        "schedules": list(server.schedules),
        "running": server.running,
        "details": dict(server.details),
    }
