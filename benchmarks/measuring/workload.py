"""What every contestant is given, and how it is timed."""

import time
from collections.abc import Iterator, Sequence

import msgspec

QUEUE = "bench"
CALLERS = 64
BULK = 1_000
FIRST_NUMBER = 1_000_000
TEXT = "x" * 77

Payload = dict[str, int | str]


class _Numbered(msgspec.Struct):
    n: int


def payload(number: int) -> Payload:
    """Return a value that is 100 bytes of compact JSON and carries `number` (below nine million)."""
    return {"n": FIRST_NUMBER + number, "text": TEXT}


def number_of(value: object) -> int:
    """Return the number that `payload` put into `value`, which may also be its JSON."""
    if isinstance(value, str | bytes):
        return msgspec.json.decode(value, type=_Numbered).n - FIRST_NUMBER
    return msgspec.convert(value, _Numbered).n - FIRST_NUMBER


def payloads(numbers: range) -> list[Payload]:
    """Return one payload for each of `numbers`."""
    return [payload(number) for number in numbers]


def chunks(count: int, size: int) -> Iterator[range]:
    """Cut the numbers below `count` into runs of at most `size`."""
    for start in range(0, count, size):
        yield range(start, min(start + size, count))


def percentile(samples: Sequence[float], percent: int) -> float:
    """Return the smallest sample that at least `percent` per cent of all samples do not exceed."""
    rank = -(-len(samples) * percent // 100)
    return sorted(samples)[max(rank, 1) - 1]


class Stopwatch:
    """Wall and processor time since it was made, against a limit of wall time."""

    def __init__(self, limit: float = float("inf")) -> None:
        """Start; `limit` is in seconds."""
        self.cut_short = False
        self._cpu_began = time.process_time()
        self._began = time.perf_counter()
        self._ends = self._began + limit

    def is_over(self) -> bool:
        """Tell whether the limit has passed."""
        self.cut_short = self.cut_short or time.perf_counter() >= self._ends
        return self.cut_short

    def figures(self, jobs: int) -> dict[str, float]:
        """Return what `jobs` done since the start come to."""
        wall = time.perf_counter() - self._began
        cpu = time.process_time() - self._cpu_began
        return {"rate": jobs / wall, "cpu_us": cpu / jobs * 1e6, "cut_short": float(self.cut_short)}
