"""What `doctor` says about a server: first of all what it keeps when it is killed."""

from windlass.core.store import Finding
from windlass.stores.redis.durability import Durability, durability, information
from windlass.stores.redis.options import Options
from windlass.stores.redis.runner import Runner


async def check(runner: Runner, prefix: str, options: Options, *, hears: bool | None) -> list[Finding]:
    """Look over the server's health and settings."""
    info = await information(runner, prefix)
    found = await durability(runner, prefix, info)
    return [
        _server(info, options),
        _durability(info, found),
        _memory(info, found, options),
        _replicas(info, options),
        *([_listener(hears=hears)] if hears is not None else []),
    ]


def _server(info: dict[str, str], options: Options) -> Finding:
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = info.get("valkey_version") or info.get("redis_version", "of an unknown version")
    role = info.get("role", "unknown")
    told = f"{name} {version}: {options.where}, role {role}"
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
        return forgets._replace(level="error") if found.evicts and not options.evicting else forgets
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


def _listener(*, hears: bool) -> Finding:
    if hears:
        return Finding("news", "ok", "new jobs are heard of at once")
    return Finding("news", "warning", "news is not heard: everybody looks each second", "look at the server's log")
