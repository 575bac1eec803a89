"""About where jobs stand in the order of their enqueue."""

from collections.abc import Callable

from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.store import Store


async def place_of(store: Store, is_before: Callable[[Job], bool]) -> int:
    """Return about which sequence number the first job has that is not `is_before`: by some twenty looks at one job.

    What is asked must change once along the order, as times and ids mostly do: jobs that were moved here from another
    store, or whose maker chose the id, may stand elsewhere.
    """
    newest = await store.newest(JobFilter(), before=None, limit=1, most=1)
    low, high = 0, newest.jobs[0].seq if newest.jobs else 0
    while low < high:
        middle = (low + high) // 2
        after = await store.jobs(JobFilter(), after=middle, limit=1)
        if after and is_before(after[0]):
            low = max(after[0].seq, middle + 1)
        else:
            high = middle
    return low
