"""Which code a run is about."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = (".", ":!benchmarks/reports")
"""What a figure depends on: a report that the run before this one wrote is no change."""


def commit() -> str | None:
    """Return the short name of the commit that is checked out, and whether files differ from it; None without git."""
    # an exported tree may lie inside of somebody else's repository
    place, _, name = _git("rev-parse", "--show-prefix", "--short", "HEAD").partition("\n")
    if place or not name:
        return None
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", *SOURCES)
    return f"{name} with changes" if changed else name


def _git(*arguments: str) -> str:
    """Return what git printed, nothing where it failed or is missing."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True)
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.rstrip("\n")
