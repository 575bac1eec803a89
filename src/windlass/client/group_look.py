"""A look at dead jobs for what ended them, as far back as a short time and little memory allow."""

from typing import Final, NamedTuple

from windlass.client.error_groups import ErrorGroups, error_name
from windlass.client.look_back import Step, look_through
from windlass.core.clock import Clock
from windlass.core.looks import JobPage

NARROWED: Final = 200
"""Jobs that are read at once to find those of one group among them."""


class Looked(NamedTuple):
    """What was found, and where to look on; None when that is all there is."""

    groups: ErrorGroups
    next: int | None


async def look_at_groups(step: Step, *, most: int, clock: Clock, seconds: float) -> Looked:
    """Group up to `most` jobs, the newest first; it ends soon after `seconds`.

    What a job carries is forgotten with the step that read it.
    """
    groups = ErrorGroups()
    before: int | None = None
    async for page in look_through(step, most=most, clock=clock, seconds=seconds):
        groups.add(page.jobs)
        before = page.next
    return Looked(groups, before)


def named(step: Step, name: str) -> Step:
    """Return the step that looks for the jobs of one group, among those of another step."""

    async def narrower(before: int | None, limit: int) -> JobPage:
        page = await step(before, NARROWED)
        found = [job for job in page.jobs if error_name(job.last_error) == name]
        return JobPage(found, page.next) if len(found) <= limit else JobPage(found[:limit], found[limit - 1].seq)

    return narrower
