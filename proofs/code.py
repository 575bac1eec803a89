"""Which code a campaign or a benchmark ran on."""

import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
_NO_CHANGE: Final = (":(exclude)proofs/reports", ":(exclude)benchmarks/reports")
"""Reports are what runs leave behind, not what they run."""


def code_in(root: Path = ROOT) -> str:
    """Return git's name for what `src` holds, and whether any file differs from the last commit; nothing without git.

    The name depends on the content alone: `git rev-parse --short HEAD:src` of any commit with the same `src` is the
    same.
    """
    # an exported tree may lie inside of somebody else's repository
    place, _, name = _git(root, "rev-parse", "--show-prefix", "--short", "HEAD:src").partition("\n")
    if place or not name:
        return ""
    return f"src {name}{' with changes' if _git(root, 'status', '--porcelain', '--', '.', *_NO_CHANGE) else ''}"


def _git(root: Path, *words: str) -> str:
    """Return what git printed; nothing where it failed or is missing."""
    try:
        done = subprocess.run(["git", *words], cwd=root, check=False, capture_output=True, text=True)
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.rstrip("\n")
