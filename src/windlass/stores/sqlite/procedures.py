"""Commands and queries of a SQLite store that also use files, or more than one read."""

import os
from typing import Final

from windlass.core import commands, queries
from windlass.core.looks import SERVED, Finding
from windlass.core.moving import Packed
from windlass.core.store_calls import table_of
from windlass.stores.sqlite.check import check
from windlass.stores.sqlite.faults import translate
from windlass.stores.sqlite.reader import Snapshot
from windlass.stores.sqlite.room import Room


async def write_heartbeat(room: Room, command: commands.WriteHeartbeat) -> None:
    """Write that a server is live; its file lock comes first, so that no process finds its record without the lock.

    A server of another process, for which this one only serves, has none: the end of this process proves nothing of it.
    """
    server = command.server
    try:
        if server.pid == os.getpid() and SERVED not in server.details:
            room.alive.hold(server.id)
    except OSError as error:
        raise translate(error, room.path) from error
    await room.writer.submit(command)


async def remove_server(room: Room, command: commands.RemoveServer) -> None:
    """Remove the record of a server, and the files that it left beside the store."""
    await room.writer.submit(command)
    room.alive.let_go(command.server_id)
    await room.reader.look(room.alive.prune_files)


async def ended_servers(room: Room, query: queries.ListEndedServers) -> list[str]:
    """Return the servers of this machine whose lock is free."""
    del query
    return await room.reader.look(room.alive.ended)


async def pack(room: Room, query: queries.PackJobs) -> Packed:
    """Return waiting jobs whole."""
    now = room.clock.now()
    return await room.reader.look(lambda cursor: room.packer.pack(Snapshot(cursor, now), query))


async def check_store(room: Room, query: queries.CheckStore) -> list[Finding]:
    """Check the library, the settings and the file."""
    del query
    return await room.reader.look(lambda cursor: check(cursor, room.path, room.options))


COMMANDS: Final = table_of(
    commands.WriteHeartbeat.by_coroutine(write_heartbeat),
    commands.RemoveServer.by_coroutine(remove_server),
)
"""The coroutine that executes a command around its step."""
QUERIES: Final = table_of(
    queries.ListEndedServers.by_coroutine(ended_servers),
    queries.PackJobs.by_coroutine(pack),
    queries.CheckStore.by_coroutine(check_store),
)
"""The coroutine that executes a query."""
