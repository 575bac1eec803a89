"""How long an import takes in a fresh interpreter, over one that imports nothing."""

import subprocess
import sys
import time
from statistics import median

from benchmarks.measuring.contestant import Outcome

TURNS = 10


def measure(module: str, first_use: str | None) -> Outcome:
    """Time `import module`, and the same with its first use, in turns with an interpreter that does nothing.

    A module that loads its parts at their first use would hide what it costs; `first_use` shows it.
    """
    programs = {"nothing": "pass", "import": f"import {module}"}
    if first_use is not None:
        programs["first_use"] = f"import {module}; {first_use}"
    times: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(TURNS + 1):
        for name, program in programs.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            # the first turn may have had to compile
            if turn:
                times[name].append((time.perf_counter() - began) * 1e3)
    return Outcome({name: median(times[name]) - median(times["nothing"]) for name in programs if name != "nothing"})
