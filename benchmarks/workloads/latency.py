"""What the duration of each claim of a drain comes to."""

from collections.abc import Sequence

from benchmarks.measuring.workload import percentile

LIMIT = 20


def claim_figures(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return the p99 of all claims, and of the first and the last tenth of them, to show growth."""
    tenth = max(1, len(milliseconds) // 10)
    return {
        "p99": percentile(milliseconds, 99),
        "p99_first": percentile(milliseconds[:tenth], 99),
        "p99_last": percentile(milliseconds[-tenth:], 99),
        "p50": percentile(milliseconds, 50),
        "p50_first": percentile(milliseconds[:tenth], 50),
        "p50_last": percentile(milliseconds[-tenth:], 50),
    }
