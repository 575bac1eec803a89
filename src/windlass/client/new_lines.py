"""What is new in the log of a job."""

from collections.abc import Sequence

from windlass.core.job import LogLine


def new_lines(before: Sequence[LogLine], after: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines of `after` that are not in `before`; the oldest may have been dropped meanwhile."""
    # the last line that is known may stand there several times: the match that leaves the least as new is meant
    for known in range(min(len(before), len(after)), 0, -1):
        if tuple(after[:known]) == tuple(before[-known:]):
            return after[known:]
    return after
