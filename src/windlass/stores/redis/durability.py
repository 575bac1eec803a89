"""What a server keeps when it ends, and what it forgets when its memory is full; said at the start and by `doctor`."""

import logging
import re
from typing import Final, NamedTuple, cast

from windlass.core.errors import WindlassError
from windlass.core.looks import Finding
from windlass.stores.redis.runner import Runner

logger = logging.getLogger("windlass.durability")

_told: Final[set[str]] = set()
_LINE: Final = re.compile(r"^([a-z_0-9]+):(.*?)\r?$", re.MULTILINE)
_SYNCED: Final = "appendfsync"
_ON_REWRITE: Final = "no-appendfsync-on-rewrite"
_ALWAYS: Final = "set appendfsync always where no job may be lost: each write waits for the disk"
_UNSYNCED: Final = "up to half a minute is lost when the machine stops"
_KEPT: Final = {
    "always": "every write is on disk before it is answered: nothing is lost when the server is killed",
    "everysec": (
        "nothing is lost when the server is killed, unless its disk is slow; when its machine stops, up to the last "
        "second of writes is lost, or two"
    ),
    "no": f"the system writes to disk when it likes: {_UNSYNCED}",
}
_TIMED: Final = "locks, unique keys that are held for a time, and what was answered to calls whose reply was lost"
_KEEP_ALL: Final = "set maxmemory-policy noeviction"


class Durability(NamedTuple):
    """What the server does with what it was given; None where it does not tell."""

    appendonly: bool | None
    appendfsync: str | None
    eviction: str | None
    limit: int | None
    unsynced_rewrite: bool | None = None
    """Whether nothing is synced while the append-only file is rewritten."""

    @property
    def evicts(self) -> bool:
        """Whether the server forgets something when its memory is full, be it only what would expire later."""
        return self.eviction is not None and self.eviction != "noeviction"

    @property
    def on_disk(self) -> Finding:
        """What is there after the server has ended."""
        if self.appendonly is None:
            said = "the server does not tell whether it keeps jobs when it ends"
            return Finding("durability", "warning", said, "ask whoever runs it for appendonly yes")
        if not self.appendonly:
            said = "appendonly is off: when the server ends, all jobs since its last snapshot are lost"
            advice = "set appendonly yes, and appendfsync always where no job may be lost"
            return Finding("durability", "warning", said, advice)
        if self.appendfsync not in _KEPT:
            said = "appendonly is on; how often it is synced the server does not tell"
            return Finding("durability", "ok", said)
        if self.unsynced_rewrite and self.appendfsync != "no":
            said = (
                f"appendfsync {self.appendfsync}, but no-appendfsync-on-rewrite yes: while the file is rewritten "
                f"nothing is synced, and {_UNSYNCED}"
            )
            return Finding("durability", "warning", said, "set no-appendfsync-on-rewrite no")
        said = f"appendfsync {self.appendfsync}: {_KEPT[self.appendfsync]}"
        if self.appendfsync == "always":
            return Finding("durability", "ok", said)
        return Finding("durability", "ok" if self.appendfsync == "everysec" else "warning", said, _ALWAYS)

    @property
    def when_full(self) -> Finding | None:
        """What the server forgets when its memory is full."""
        if self.eviction is None or not self.evicts:
            return None
        # such a policy takes only keys that have an expiry
        forgets = _TIMED if self.eviction.startswith("volatile-") else "jobs"
        said = f"maxmemory-policy {self.eviction}: when memory is full the server forgets {forgets}"
        return Finding("memory", "warning", said, _KEEP_ALL)


async def information(runner: Runner, prefix: str) -> dict[str, str]:
    """Return what the server tells of itself."""
    return facts_of(cast("bytes", await runner.ask(prefix, "INFO")))


def facts_of(text: bytes) -> dict[str, str]:
    """Return by name what a server answers to `INFO`."""
    return {name: value.strip() for name, value in _LINE.findall(text.decode(errors="replace"))}


async def durability(runner: Runner, prefix: str, info: dict[str, str]) -> Durability:
    """Return how durable the server is: what it tells of itself, and how often it syncs."""
    told = told_by(info)
    if not told.appendonly:
        return told
    set_to = await _settings(runner, prefix, _SYNCED, _ON_REWRITE)
    on_rewrite = set_to.get(_ON_REWRITE)
    return told._replace(
        appendfsync=set_to.get(_SYNCED), unsynced_rewrite=None if on_rewrite is None else on_rewrite == "yes"
    )


def told_by(info: dict[str, str]) -> Durability:
    """Return how durable the server is as far as it says by itself: managed ones hide their settings, but not these."""
    on = info.get("aof_enabled")
    limit = info.get("maxmemory")
    return Durability(
        None if on is None else on == "1", None, info.get("maxmemory_policy"), None if limit is None else int(limit)
    )


async def tell(runner: Runner, prefix: str, info: dict[str, str], where: str) -> None:
    """Log in one line what the server keeps, once in a process for each store."""
    if where in _told:
        return
    _told.add(where)
    found = await durability(runner, prefix, info)
    on_disk, when_full = found.on_disk, found.when_full
    # who cannot see what is kept cannot mend it either, and would be warned at each start
    bad = when_full is not None or (on_disk.level != "ok" and found.appendonly is not None)
    said = line_of(on_disk) if when_full is None else f"{line_of(on_disk)}; {line_of(when_full)}"
    logger.log(logging.WARNING if bad else logging.INFO, "%s: %s", where, said)


def line_of(finding: Finding) -> str:
    """Return in one line what was found, and what to do if it is not well."""
    return finding.message if finding.level == "ok" else f"{finding.message}: {finding.advice}"


async def _settings(runner: Runner, prefix: str, *names: str) -> dict[str, str]:
    """Return settings, or none where the user may not ask for them."""
    try:
        found = cast("list[bytes]", await runner.ask(prefix, "CONFIG", "GET", *names))
    except WindlassError:
        # managed servers refuse it in words of their own
        return {}
    told = [text.decode() for text in found]
    return dict(zip(told[::2], told[1::2], strict=True))
