"""For tests of programs that use Windlass, and of stores.

A clock that moves only when told, chance that repeats, and faults at named points. The behaviours that every store must
show are in `windlass.testing.conformance`, and the state machine that compares a store with a small model is in
`windlass.testing.machine`; both are imported by their own name, since they need pytest and Hypothesis.
"""

from windlass.testing.clock import FakeClock
from windlass.testing.failpoints import Fault, Faulted, arm_from_environment
from windlass.testing.rng import SeededRng

__all__ = ["FakeClock", "Fault", "Faulted", "SeededRng", "arm_from_environment"]
