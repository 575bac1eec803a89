"""Jobs in a list, the newest first."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from windlass.api.operations import NEWEST as OPERATION
from windlass.client.look_back import Step, look_back, matching
from windlass.client.places import place_of
from windlass.core.filters import JobFilter
from windlass.core.looks import JobPage
from windlass.core.states import ENDS, State
from windlass.core.stats import QueueStats, total
from windlass.http.dashboard.carried_text import without_carried
from windlass.http.dashboard.job_bulk import JobsBulk, bulk_of
from windlass.http.dashboard.job_query import JobsAsked, JobsWanted, in_form, wanted
from windlass.http.dashboard.job_search import MASKED, NEWEST, having, reach_of
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.view import Facts, View
from windlass.http.shown import READERS

ON_A_PAGE: Final = 50
ENOUGH: Final = 0.12
"""Seconds after which a page is shown with what was found."""
KEPT: Final = 5.0
"""Seconds that an answer is kept for which many records may be looked at: a watched page does not ask each second."""
REACH_KEPT: Final = 30.0
SLACK: Final = 1_000
"""Jobs that may have been made a little out of the order of their enqueue."""
SUGGESTED: Final = 200
"""Queues that a form suggests."""


class JobList(View[JobsAsked]):
    """Jobs that match what the URL says, and how to go on to older ones."""

    name: ClassVar = "jobs"
    title: ClassVar = "Jobs"
    path: ClassVar = "/jobs"
    roles: ClassVar = OPERATION.roles
    asks = JobsAsked
    regions: ClassVar = ("tabs", "list")

    async def look(self, seen: Seen, asked: JobsAsked) -> Facts:
        """Return a page of the list; of what cannot be read only what is wrong with it."""
        asks = wanted(asked)
        queues = await seen.queues()
        page = JobPage([], None) if asks.problems else await _page(seen, asks, queues)
        tabs = _tabs(asks, queues)
        return {
            "wanted": asks,
            "times": {"since": in_form(asks.chosen.since), "until": in_form(asks.chosen.until)},
            "problems": asks.problems,
            "jobs": page.jobs,
            "next": page.next,
            **await _looked_back(seen, asks, page),
            "tabs": tabs,
            "bulk": _bulk(asks, page, dict(tabs)),
            "known_queues": [row.queue for row in queues][:SUGGESTED],
            "filtered": asks.chosen != JobFilter(state=asks.chosen.state) or asks.text is not None,
            "newest": NEWEST,
            "payloads": NEWEST if _reads(seen) else MASKED,
        }


async def _page(seen: Seen, asks: JobsWanted, queues: Sequence[QueueStats]) -> JobPage:
    chosen = asks.chosen

    async def ask() -> JobPage:
        step = matching(seen.store, chosen) if asks.text is None else await _searching(seen, chosen, asks.text)
        clock = seen.client.clock
        page = await look_back(step, limit=ON_A_PAGE, before=asks.before, clock=clock, seconds=ENOUGH)
        return JobPage([without_carried(job) for job in page.jobs], page.next)

    if _is_counted(asks):
        return await ask()
    known = (seen.looker.queues, _reads(seen), chosen, asks.text, asks.before, _gone(chosen, queues))
    return await seen.kept.within(KEPT, ("jobs", *known), ask)


def _is_counted(asks: JobsWanted) -> bool:
    """Whether the counts of queues are those of what is chosen, which then is found at once too."""
    return asks.text is None and asks.chosen == JobFilter(state=asks.chosen.state, queue=asks.chosen.queue)


def _gone(chosen: JobFilter, queues: Sequence[QueueStats]) -> int | None:
    """Return a number that changes when ended jobs are retried or deleted: what somebody did is seen at once."""
    state = chosen.state
    if state is None or state not in ENDS:
        return None
    return sum(int(getattr(row.totals, state)) - int(getattr(row, state)) for row in queues)


async def _searching(seen: Seen, chosen: JobFilter, text: str) -> Step:
    reads = _reads(seen)
    reach = await seen.kept.within(
        REACH_KEPT, ("reach", seen.looker.queues, reads, chosen), lambda: reach_of(seen.store, chosen, reads=reads)
    )
    return having(seen.store, chosen, text, reach, seen.reading)


def _reads(seen: Seen) -> bool:
    return not seen.looker.roles.isdisjoint(READERS)


async def _looked_back(seen: Seen, asks: JobsWanted, page: JobPage) -> Facts:
    """Return when the job was made where a look ended too soon, and about where jobs begin that are old enough."""
    end = page.next
    if end is None or len(page.jobs) >= ON_A_PAGE:
        return {"is_cut": False}
    met = await seen.store.jobs(JobFilter(), after=end - 1, limit=1)
    made_at, until, jump = met[0].created_at if met else None, asks.chosen.until, None
    if made_at is not None and until is not None and made_at > until:
        key = ("place", seen.looker.queues, until)
        place = await seen.kept.within(
            REACH_KEPT, key, lambda: place_of(seen.store, lambda job: job.created_at < until)
        )
        jump = min(place + SLACK, end)
    return {"is_cut": True, "looked_back_to": made_at, "jump": jump}


def _bulk(asks: JobsWanted, page: JobPage, counts: Mapping[State | None, int | None]) -> JobsBulk | None:
    # a search finds more than a filter can say; and what is newer than a page of old ones was not seen
    if asks.text is not None or asks.before is not None:
        return None
    known = counts[State(asks.chosen.state)] if asks.chosen.state else None
    return bulk_of(asks.chosen, page.jobs, len(page.jobs) if page.next is None else known)


def _tabs(asks: JobsWanted, queues: Sequence[QueueStats]) -> list[tuple[State | None, int | None]]:
    """Return the states, and how many jobs are in each where that is known: of all, or of one queue."""
    chosen = asks.chosen
    if not _is_counted(asks):
        return [(None, None), *((state, None) for state in State)]
    rows = [row for row in queues if chosen.queue in (None, row.queue)]
    counts = total(rows)
    by_state = [(state, int(getattr(counts, state))) for state in State]
    return [(None, sum(count for _, count in by_state)), *by_state]
