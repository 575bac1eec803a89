"""What goes wrong with an object store, and to which of its calls: a plan that depends on a seed alone."""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Fault: TypeAlias = Literal[
    "500",
    "503",
    "429",
    "slow",
    "lost answer",
    "late answer",
    "truncated",
    "repeated",
    "reset",
    "stall",
    "skewed",
    "burst",
    "stale list",
    "held",
]
"""What is done to a call.

`500`, `503`, `429`: it is refused, and not done. `slow`: done and answered after a while. `lost answer`: done, and its
connection ends without an answer. `late answer`: done, then nothing comes for a while, and then the connection ends.
`truncated`: the answer ends in the middle of the body. `repeated`: done twice, and the second answer is given: a write
that had a condition gets a 412 that is true. `reset`: not done, the connection is reset. `stall`: not done, nothing
comes for a while, and then the connection is reset. `skewed`: refused by a 403 that says that the client's clock is
wrong. `burst`: one of a run of calls, one after the other, that are refused by 500 and 503. `stale list`: not done, and
the answer is that of the last call that asked for the same list. `held`: done, and nothing comes until the client gives
up by its own time-out.
"""
WITH_EVERY_CALL: Final[Sequence[Fault]] = (
    "500",
    "503",
    "429",
    "slow",
    "lost answer",
    "late answer",
    "repeated",
    "reset",
    "stall",
)
WITH_A_BODY: Final[Sequence[Fault]] = ("truncated",)
"""What can be done only to calls that are answered with a body."""
WITH_A_LIST: Final[Sequence[Fault]] = ("stale list",)
WITH_A_WRITE: Final[Sequence[Fault]] = ("held",)
BURST: Final = 20
"""Calls of a burst."""
SKEWED: Final = 5
"""Calls in a row that a wrong clock meets. Of other calls none is: a clock is not wrong now and then."""
OF_TEN: Final = 10


@dataclass(frozen=True)
class Faults:
    """A `share` of all calls gets one of `kinds` each; `only` some calls, where they are named.

    What lasts for a while lasts for `slow`, `late` or `stall` seconds. All calls, the faulty ones too, take `latency`
    seconds longer each way and up to `jitter` more, on a line of `bytes_per_second`. `slow_close` is how many seconds a
    refusal lets its client wait for the end of the connection. With `burst_every` every so many calls a burst comes, in
    turns with a while in which the clock is wrong.
    """

    share: float = 0.3
    kinds: Sequence[Fault] = (*WITH_EVERY_CALL, *WITH_A_BODY)
    only: Collection[str] | None = None
    slow: float = 0.2
    late: float = 0.5
    stall: float = 0.5
    latency: float = 0.0
    jitter: float = 0.0
    bytes_per_second: int | None = None
    slow_close: float = 0.0
    burst_every: int | None = None


NONE: Final = Faults(share=0.0)
LINES: Final[Mapping[str, Faults]] = {
    "latency": Faults(share=0.0, latency=0.05, jitter=0.05),
    # Tests by toxiproxy say 1 kbps, and count kilobytes a second. At a kilobit one request of some 700
    # bytes with its answer takes longer than the 10 s that a heartbeat counts for: no owner could keep its store.
    "1 kB/s": Faults(share=0.0, bytes_per_second=1_024),
    "15 % resets": Faults(share=0.15, kinds=("reset", "lost answer")),
    "slow close": Faults(share=0.15, kinds=("500",), slow_close=1.0),
    "stalls of 3 s": Faults(share=0.05, kinds=("stall", "late answer"), stall=3.0, late=3.0),
    "10 % 503": Faults(share=0.1, kinds=("503",)),
    "5 % 429": Faults(share=0.05, kinds=("429",)),
    "all at once": Faults(share=0.3, latency=0.01, jitter=0.01),
}
"""The lines to an object store that F17 names."""


class Plan:
    """Says what is done to each call in turn.

    Of ten calls of the same name as many are faulty as make the share, and every kind of fault comes before one comes
    again: so that none is spared in a short campaign.
    """

    def __init__(self, faults: Faults, seed: int) -> None:
        self.faults = faults
        self._chance: Final = random.Random(seed)
        self._turns: Final[dict[str, list[bool]]] = {}
        self._kinds: Final[dict[str, list[Fault]]] = {}
        self._asked = 0

    def fault(self, call: str) -> Fault | None:
        """Return what is done to the next call of this name."""
        faults = self.faults
        self._asked += 1
        if (in_a_run := self._in_a_run()) is not None:
            return in_a_run
        if faults.only is not None and call not in faults.only:
            return None
        if not self._next_turn(call):
            return None
        kinds: list[Fault] = [each for each in faults.kinds if call in _CALLS.get(each, (call,))]
        return self._next_kind(call, kinds) if kinds else None

    def _in_a_run(self) -> Fault | None:
        """Return what is done to a call that is one of a run: they come in turns."""
        if not (every := self.faults.burst_every):
            return None
        run, place = divmod(self._asked, every)
        if run % 2:
            return "burst" if place < BURST else None
        return "skewed" if run and place < SKEWED else None

    def put_back(self, call: str, fault: Fault) -> None:
        """Let a fault that could not be done to a call be done to the next one of its name that gets any."""
        self._kinds.setdefault(call, []).append(fault)

    def seconds(self, most: float) -> float:
        """Return a length of time of at most so many seconds."""
        return self._chance.uniform(0, most)

    def _next_turn(self, call: str) -> bool:
        turns = self._turns.setdefault(call, [])
        if not turns:
            # a share that is no number of tenths is rounded by chance, this way or the other
            faulty = int(self.faults.share * OF_TEN + self._chance.random())
            turns.extend(each < faulty for each in range(OF_TEN))
            self._chance.shuffle(turns)
        return turns.pop()

    def _next_kind(self, call: str, kinds: Sequence[Fault]) -> Fault:
        left = self._kinds.setdefault(call, [])
        if not left:
            left.extend(kinds)
            self._chance.shuffle(left)
            # those that few calls can get come first
            left.sort(key=_CALLS.__contains__)
        return left.pop()

    def change(self, faults: Faults) -> None:
        """Go by other faults from the next call on."""
        self.faults = faults
        self._turns.clear()
        self._kinds.clear()


_CALLS: Final[Mapping[Fault, Collection[str]]] = {
    **dict.fromkeys(WITH_A_BODY, ("GetObject", "ListObjectsV2")),
    **dict.fromkeys(WITH_A_LIST, ("ListObjectsV2",)),
    **dict.fromkeys(WITH_A_WRITE, ("PutObject",)),
}
"""The calls that a fault can be done to, where it is not every one."""
