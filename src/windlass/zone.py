"""Time zones by name."""

import difflib
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Final, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from windlass.core.errors import InvalidValue
from windlass.core.names import shortened

# No name of a zone has a dot, and none begins with a slash: nothing outside of the zone data can be named.
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", re.ASCII)
_MAX_NAME: Final = 100
# These count leap seconds, are another spelling, or differ from machine to machine.
_NO_ZONES: Final = re.compile(r"(right|posix)/.*|localtime|posixrules")


def zone(name: str) -> tzinfo:
    """Return the zone with this IANA name, such as `Europe/Stockholm`; raise `InvalidValue` when there is none.

    `UTC` needs no zone data. For the others the machine's are read, or those of the package `tzdata`.
    """
    if name == "UTC":
        return UTC
    if not isinstance(name, str):
        message = f"a time zone is given by its name, as in 'Europe/Stockholm', not by {type(name).__name__}"
        raise InvalidValue(message)
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name) or _NO_ZONES.fullmatch(name):
        _refuse(name)
    try:
        return ZoneInfo(name)
    # a name of a folder, and one of a file that holds no zone, are other errors than one of nothing
    except (ZoneInfoNotFoundError, OSError, ValueError):
        _refuse(name)


def _refuse(name: str) -> NoReturn:
    message = f"there is no time zone {shortened(name, 60)!r}: {_advice(name)}"
    raise InvalidValue(message)


def _advice(name: str) -> str:
    by_lower = _names(zoneinfo.TZPATH)
    if not by_lower:
        return "this machine has no zone data, so install the package 'tzdata' beside windlass"
    near = difflib.get_close_matches(name[:_MAX_NAME].lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]!r}?" if near else "use an IANA name, as in 'Europe/Stockholm'"


@lru_cache(maxsize=1)
def _names(folders: Sequence[str]) -> Mapping[str, str]:
    """Return the names of all zones in these folders by how they are written small; hundreds of files are read."""
    del folders
    return {each.lower(): each for each in sorted(available_timezones()) if not _NO_ZONES.fullmatch(each)}
