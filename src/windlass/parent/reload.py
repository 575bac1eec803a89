"""Looking for changes in the source of an app."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_NOT_SOURCE: Final = frozenset({"__pycache__", "node_modules", "site-packages"})
_PROJECT: Final = "pyproject.toml"


class Stamp(NamedTuple):
    """When a file was changed, and how long it is: one of them tells of nearly every change."""

    changed_at: int
    size: int


class SourceWatch:
    """Knows the `*.py` files and the pyproject.toml below a folder; hidden folders and environments are left out."""

    def __init__(self, folder: Path) -> None:
        """Remember how they are now."""
        self._folder = folder
        self._known = self._look()

    def changed(self) -> list[str]:
        """Return what was changed, added or deleted since the last time, by its path below the folder."""
        before, self._known = self._known, self._look()
        names = before.keys() | self._known.keys()
        found = [name for name in names if before.get(name) != self._known.get(name)]
        return sorted(str(Path(name).relative_to(self._folder)) for name in found)

    def _look(self) -> dict[str, Stamp]:
        return dict(_stamps(self._folder))


def _stamps(folder: Path) -> Iterator[tuple[str, Stamp]]:
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:
        # deleted meanwhile, or not ours to look into
        return
    for entry in found:
        if entry.name.startswith(".") or entry.name in _NOT_SOURCE:
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                if not Path(entry.path, "pyvenv.cfg").exists():
                    yield from _stamps(Path(entry.path))
            elif entry.name.endswith(".py") or entry.name == _PROJECT:
                seen = entry.stat()
                yield entry.path, Stamp(seen.st_mtime_ns, seen.st_size)
        except OSError:
            continue
