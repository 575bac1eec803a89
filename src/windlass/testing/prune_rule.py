"""Which finished records a prune deletes, by the model."""

from collections.abc import Collection, Sequence
from datetime import datetime

from windlass.core.duration import later
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.retention import Retention
from windlass.core.states import State


def pruned_well(
    ended: Sequence[Job], removed: Collection[JobId], retention: Retention, now: datetime, place: tuple[str, State]
) -> bool:
    """Whether `removed` is what had to go of the records that have `ended` in this queue and state.

    Those whose time is over and those that are too many, the oldest first; of one moment any.
    """
    queue, state = place
    here = [(job.finished_at or now, job.id) for job in ended if (job.queue, job.state) == place]
    keep = retention.keep(queue).for_state(state)
    over = 0 if keep is None else sum(later(at, keep) <= now for at, _ in here)
    if retention.most is not None:
        over = max(over, len(here) - retention.most)
    gone = [at for at, job_id in here if job_id in removed]
    stay = [at for at, job_id in here if job_id not in removed]
    return len(gone) == over and (not gone or not stay or max(gone) <= min(stay))
