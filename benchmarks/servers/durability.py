"""What a commit survives in SQLite, by its number in `PRAGMA synchronous`."""

NAMES = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def name_of(synchronous: int) -> str:
    """Return SQLite's own word: FULL survives a power cut, NORMAL in WAL mode may lose the last commits."""
    return NAMES[synchronous]
