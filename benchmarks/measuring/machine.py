"""What moves the numbers of a run, and nothing that tells whose machine it was."""

import os
import platform
import resource
import sqlite3
from pathlib import Path

from proofs.code import code_in


def describe(folder: Path) -> dict[str, str]:
    """Return the interpreter, the code, the engine, the processor count and the kind of disk under `folder`."""
    code = code_in()
    return {
        "Python": platform.python_version(),
        **({"code": code} if code else {}),
        "SQLite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(os.cpu_count()),
        "file system": _file_system(folder.resolve()),
    }


def peak_mib() -> float:
    """Return the most memory that this process has held."""
    status = Path("/proc/self/status")
    if status.exists():
        # what the system counts for a process begins with what its parent held, this does not
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _file_system(folder: Path) -> str:
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    mounted = [line.split()[1:3] for line in mounts.read_text().splitlines()]
    holders = [(len(Path(point).parts), kind) for point, kind in mounted if folder.is_relative_to(point)]
    # of two mounts on one point the later covers the earlier
    return max(reversed(holders), key=lambda holder: holder[0])[1]
