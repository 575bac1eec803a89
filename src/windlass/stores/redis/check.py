"""What `doctor` says about a server: first of all what it keeps when it is killed."""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.core.looks import Finding
from windlass.core.moving import Moved
from windlass.kit.moves import looking
from windlass.stores.redis.durability import Durability, durability, information
from windlass.stores.redis.keys import LAYOUT
from windlass.stores.redis.options import Options, Place
from windlass.stores.redis.prepare import layout
from windlass.stores.redis.runner import Runner

_LEVELS: Final = ("error", "warning", "ok")


class _Server(NamedTuple):
    place: Place
    info: dict[str, str]
    durability: Durability


async def check(runner: Runner, prefixes: Sequence[str], options: Options) -> list[Finding]:
    """Look over the health and the settings of every server that has keys of these prefixes; the first is home."""
    servers = await _servers(runner, prefixes)
    return [
        _server(servers[0].info, options, len(servers)),
        _worst(servers, [_durability(server.info, server.durability) for server in servers]),
        _worst(servers, [_memory(server.info, server.durability, options) for server in servers]),
        _worst(servers, [_replicas(server.info, options) for server in servers]),
        await _layout(runner, prefixes[0]),
    ]


async def _servers(runner: Runner, prefixes: Sequence[str]) -> list[_Server]:
    found: dict[str, _Server] = {}
    for prefix in prefixes:
        info = await information(runner, prefix)
        # one that does not tell who it is counts once
        name = info.get("run_id", "")
        if name not in found:
            place = await runner.place(prefix, asyncio.get_running_loop().time() + runner.patience)
            found[name] = _Server(place, info, await durability(runner, prefix, info))
    return [*found.values()]


def _worst(servers: Sequence[_Server], findings: Sequence[Finding]) -> Finding:
    """Return the worst of what was found, and where it was if there are several servers."""
    server, finding = min(zip(servers, findings, strict=True), key=lambda pair: _LEVELS.index(pair[1].level))
    return finding if len(servers) == 1 else finding._replace(message=f"{server.place}: {finding.message}")


async def _layout(runner: Runner, prefix: str) -> Finding:
    return Finding("layout", "ok", f"version {await layout(runner, prefix, create=False)} of {LAYOUT}")


def of_move(moved: Moved | None, *, everywhere: bool) -> list[Finding]:
    """Tell of a store whose jobs go elsewhere, be it from some of its queues alone."""
    if not everywhere:
        said = "a move was begun, or taken back, by half: some queues take jobs, and others do not"
        return [Finding("moved", "error", said, "run `windlass move` again, with --undo if it was to be taken back")]
    return looking.of_move(moved)


def _server(info: dict[str, str], options: Options, servers: int) -> Finding:
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = info.get("valkey_version") or info.get("redis_version", "of an unknown version")
    role = info.get("role", "unknown")
    others = f", one of {servers} that have queues" if servers > 1 else ""
    told = f"{name} {version}: {options.where}, role {role}{others}"
    if role == "slave":
        return Finding("server", "error", told, "name the master in the URL: a replica takes no writes")
    return Finding("server", "ok", told)


def _durability(info: dict[str, str], found: Durability) -> Finding:
    if found.appendonly and info.get("aof_last_write_status") == "err":
        return Finding("durability", "error", "the server could not write to its append-only file", "look at its disk")
    return found.on_disk


def _memory(info: dict[str, str], found: Durability, options: Options) -> Finding:
    forgets = found.when_full
    if forgets is not None:
        # whoever has not insisted would be refused at the next start
        return forgets if options.evicting else forgets._replace(level="error")
    used = int(info.get("used_memory", 0))
    if found.limit and used > 0.9 * found.limit:
        return Finding(
            "memory",
            "warning",
            f"{used / 2**20:,.0f} MiB of {found.limit / 2**20:,.0f} MiB are used: soon no job can be enqueued",
            "raise maxmemory, or keep fewer finished jobs",
        )
    bound = f"of {found.limit / 2**20:,.0f} MiB" if found.limit else "without a limit"
    return Finding("memory", "ok", f"{used / 2**20:,.0f} MiB used {bound}, policy {found.eviction}")


def _replicas(info: dict[str, str], options: Options) -> Finding:
    connected = int(info.get("connected_slaves", 0))
    if options.wait > connected:
        return Finding(
            "replicas",
            "error",
            f"?wait={options.wait} waits for more replicas than the {connected} that are connected",
            "connect the replicas, or lower ?wait=",
        )
    waits = f", {options.wait} of which every write waits for" if options.wait else ""
    return Finding("replicas", "ok", f"{connected} connected{waits}")


def of_news(*, hears: bool) -> Finding:
    """Tell whether news is heard."""
    if hears:
        return Finding("news", "ok", "new jobs are heard of at once")
    return Finding("news", "warning", "news is not heard: everybody looks each second", "look at the server's log")
