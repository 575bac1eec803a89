"""Dead letters, by what ended them."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final, NamedTuple

from msgspec import Meta

from windlass.api.operations import NEWEST
from windlass.api.shape import Asked, Count, Name
from windlass.client.error_groups import ErrorGroup, died_at, is_type, message_of
from windlass.client.group_look import Looked, look_at_groups, named
from windlass.client.look_back import look_back, matching
from windlass.core.filters import JobFilter
from windlass.core.looks import JobPage
from windlass.core.names import MAX_NAME
from windlass.core.states import State
from windlass.core.stats import QueueStats
from windlass.http.dashboard.bulk_change import BulkChange, all_of, group_of
from windlass.http.dashboard.carried_text import without_carried
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.view import Facts, View

MOST: Final = 5_000
"""Dead jobs that are looked at for groups."""
GROUPING: Final = 0.1
COUNTING: Final = 0.06
LISTING: Final = 0.03
"""Seconds after which a look ends with what was found, for all groups, for one, and for its jobs: a page answers soon,
whatever there is."""
KEPT: Final = 5.0
"""Seconds in which jobs that die meanwhile may be missing."""
ROWS: Final = 50
GROUPS: Final = 100


class DeadAsked(Asked, kw_only=True):
    """Which dead jobs: of a queue, of a kind, of one error; `ids` is asked for by a button, to name them all."""

    queue: Name | None = None
    kind: Name | None = None
    error: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)] | None = None
    before: Count | None = None
    ids: bool = False


class GroupRow(NamedTuple):
    """A group, and the change of all that is in it."""

    group: ErrorGroup
    bulk: BulkChange


class Dead(View[DeadAsked]):
    """Groups of dead jobs, or the jobs of one group."""

    name: ClassVar = "dead"
    title: ClassVar = "Dead letters"
    path: ClassVar = "/dead"
    roles: ClassVar = NEWEST.roles
    asks = DeadAsked
    regions: ClassVar = ("dead",)

    async def look(self, seen: Seen, asked: DeadAsked) -> Facts:
        """Return the groups, or one of them."""
        queues = await seen.queues()
        look = _Look(seen, asked, [row for row in queues if asked.queue in (None, row.queue)])
        looked = await look.groups()
        facts: Facts = {
            "queues": [row for row in queues if row.dead or row.queue == asked.queue],
            "total": look.total,
            "looked_at": looked.groups.count,
            "is_whole": looked.next is None,
            "opened": None,
        }
        if asked.error is None:
            return {**facts, **_groups(look, looked)}
        return {**facts, **await _opened(look, looked, asked.error)}


class _Look:
    """A look at the dead jobs that are asked for."""

    def __init__(self, seen: Seen, asked: DeadAsked, rows: Sequence[QueueStats]) -> None:
        self.asked = asked
        self.given = {"queue": asked.queue, "kind": asked.kind}
        self.total = sum(row.dead for row in rows)
        self._seen = seen
        self._type = asked.error if asked.error is not None and is_type(asked.error) else None
        # changed by whatever takes jobs out of the dead, and not by those that die: what was done is seen at once,
        # and the dying of many is looked at every few seconds
        gone = sum(row.totals.dead - row.dead for row in rows)
        self._key = (*self.given.items(), self._type, asked.error is None, gone, seen.looker.queues)
        chosen = JobFilter(queue=asked.queue, kind=asked.kind, state=State.DEAD, error_type=self._type)
        self._step = matching(seen.store, chosen)

    async def groups(self) -> Looked:
        """Return the groups of the newest."""

        async def ask() -> Looked:
            clock, seconds = self._seen.client.clock, GROUPING if self.asked.error is None else COUNTING
            return await look_at_groups(self._step, most=MOST, clock=clock, seconds=seconds)

        return await self._seen.kept.within(KEPT, ("dead groups", *self._key), ask)

    async def jobs(self, name: str) -> JobPage:
        """Return some jobs of one group, those of this page that died last first, without what they carry."""
        step = self._step if self._type is not None else named(self._step, name)

        async def ask() -> JobPage:
            clock, before = self._seen.client.clock, self.asked.before
            page = await look_back(step, limit=ROWS, before=before, clock=clock, seconds=LISTING)
            latest = sorted(page.jobs, key=lambda job: (died_at(job), job.seq), reverse=True)
            return JobPage([without_carried(job) for job in latest], page.next)

        return await self._seen.kept.within(KEPT, ("dead jobs", name, self.asked.before, *self._key), ask)


def _groups(look: _Look, looked: Looked) -> Facts:
    groups, is_whole = looked.groups.in_order(), looked.next is None
    if not groups:
        return {"groups": (), "rarer": 0, "bulk": None, "kinds": ()}
    newest_at = max(group.newest_at for group in groups)
    counts = look.asked.kind is None
    count = look.total if counts else looked.groups.count
    return {
        "groups": [GroupRow(each, _bulk(look, each, is_whole=is_whole)) for each in groups[:GROUPS]],
        "rarer": len(groups[GROUPS:]),
        "bulk": all_of(look.given, count, is_exact=counts or is_whole, newest_at=newest_at),
        "kinds": sorted({kind for group in groups for kind in group.kinds if kind is not None})[:GROUPS],
    }


async def _opened(look: _Look, looked: Looked, name: str) -> Facts:
    group = looked.groups.named(name)
    page = await look.jobs(name)
    bulk = None if group is None else _bulk(look, group, is_whole=looked.next is None)
    rows = [(job, message_of(job.last_error)) for job in page.jobs]
    return {"opened": name, "group": group, "bulk": bulk, "jobs": rows, "next": page.next, "kinds": ()}


def _bulk(look: _Look, group: ErrorGroup, *, is_whole: bool) -> BulkChange:
    # ids are many: only a button that needs them asks for those of its one group
    with_ids = look.asked.ids and look.asked.error is not None
    return group_of(look.given, group, is_whole=is_whole, with_ids=with_ids)
