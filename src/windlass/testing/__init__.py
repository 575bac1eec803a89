"""For tests of programs that use Windlass, and of stores. Importing it loads little; each name is loaded when used.

An app on a store in memory or in a database, one job of it, what it has enqueued, crashes; a clock that moves only when
told, chance that repeats, and faults at named points. The fixtures for pytest are in `windlass.testing.plugin`. The
behaviours that every store must show are in `windlass.testing.conformance`, which the distribution
`windlass-conformance` installs, and the state machine that compares a store with a small model is in
`windlass.testing.machine`; these are imported by their own name, since they need pytest and Hypothesis.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.engine.inline import Endless
    from windlass.testing.app import TestApp
    from windlass.testing.app_in_database import in_database, in_database_sync
    from windlass.testing.app_in_memory import in_memory, in_memory_sync
    from windlass.testing.blocking_app import BlockingTestApp
    from windlass.testing.clock import FakeClock
    from windlass.testing.crashes import crash, crash_at
    from windlass.testing.failpoints import Fault, Faulted, arm_from_environment
    from windlass.testing.looking import assert_enqueued, assert_not_enqueued
    from windlass.testing.one_job import run_job, run_job_sync
    from windlass.testing.rng import SeededRng, SteadyRng

__all__ = [
    "BlockingTestApp",
    "Endless",
    "FakeClock",
    "Fault",
    "Faulted",
    "SeededRng",
    "SteadyRng",
    "TestApp",
    "arm_from_environment",
    "assert_enqueued",
    "assert_not_enqueued",
    "crash",
    "crash_at",
    "in_database",
    "in_database_sync",
    "in_memory",
    "in_memory_sync",
    "run_job",
    "run_job_sync",
]

_HOMES = {
    "windlass.engine.inline": ("Endless",),
    "windlass.testing.app": ("TestApp",),
    "windlass.testing.blocking_app": ("BlockingTestApp",),
    "windlass.testing.clock": ("FakeClock",),
    "windlass.testing.crashes": ("crash", "crash_at"),
    "windlass.testing.failpoints": ("Fault", "Faulted", "arm_from_environment"),
    "windlass.testing.app_in_database": ("in_database", "in_database_sync"),
    "windlass.testing.app_in_memory": ("in_memory", "in_memory_sync"),
    "windlass.testing.looking": ("assert_enqueued", "assert_not_enqueued"),
    "windlass.testing.one_job": ("run_job", "run_job_sync"),
    "windlass.testing.rng": ("SeededRng", "SteadyRng"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        message = f"module 'windlass.testing' has no attribute {name!r}"
        raise AttributeError(message)
    value: object = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
