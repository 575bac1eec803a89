"""Pages that go on: the store is looked at once each interval for all who watch the same."""

import logging
from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

from windlass.api.shape import Told
from windlass.core.errors import WindlassError
from windlass.core.ids import JobId
from windlass.http.dashboard.page import Page
from windlass.http.dashboard.rendering import Frame, Rendering
from windlass.http.dashboard.seen import Kept, Looker, Memo, Seen
from windlass.http.reply import event
from windlass.http.shared import Shared
from windlass.http.subscribers import Subscribers
from windlass.http.wakes import Wakes
from windlass.kit.timeouts import call_with_timeout

logger = logging.getLogger("windlass.http")

INTERVAL: Final = 1.0
"""Seconds between two looks."""
MOST_LOOKS: Final = 8
"""Different pages that one interval looks at; of more each waits for its turn."""
LATE: Final = 3.0
"""Seconds of one look after which all who watch are told that what they see is old."""
PATIENCE: Final = 10.0
"""Seconds that one look may take: those who watch other pages wait behind it."""

_WATCHERS: Final = "\0 pages that are watched"
"""Who reads for all who watch: no token has such a name."""


class PageChange(Told, kw_only=True):
    """What has changed on a page: parts of it by name, as HTML; or why nothing can be known for now."""

    regions: Mapping[str, str] = {}
    away: str | None = None


class Watched(NamedTuple):
    """A page that somebody watches; whoever watches an equal one sees the same."""

    page: str
    job_id: JobId | None
    query: bytes
    looker: Looker
    root: str


class Watcher:
    """One browser that watches a page: gets the parts that have changed since it last got some, however slow it is."""

    def __init__(self, wakes: Wakes) -> None:
        self._wakes = wakes
        self._regions: Mapping[str, str] = {}
        self._away: str | None = None
        self._told = PageChange()

    def see(self, regions: Mapping[str, str]) -> None:
        """Take how the page looks now."""
        self._regions, self._away = regions, None
        self._wake()

    def miss(self, why: str) -> None:
        """Take it that nothing can be known for now."""
        self._away = why
        self._wake()

    def miss_for_now(self, why: str) -> None:
        """Take it that nothing is known yet, unless something worse is known already."""
        if self._away is None:
            self.miss(why)

    def end(self) -> None:
        """Let it end."""
        self._wakes.end()

    async def wait(self, silence: float) -> bytes | None:
        """Return what has changed, or nothing after `silence` seconds; None at the end."""
        if not await self._wakes.woken(silence):
            return None
        changed = self._changed()
        if not changed and self._away == self._told.away:
            return b""
        self._told = PageChange(regions={**self._told.regions, **changed}, away=self._away)
        return event(PageChange(regions=changed, away=self._away))

    def _wake(self) -> None:
        if self._away != self._told.away or self._changed():
            self._wakes.wake()

    def _changed(self) -> dict[str, str]:
        told = self._told.regions
        return {name: html for name, html in self._regions.items() if told.get(name) != html}


class Live:
    """All who watch, and one look at a time for them."""

    def __init__(self, shared: Shared, rendering: Rendering, pages: Mapping[str, Page]) -> None:
        """Begin with nobody."""
        client = self._client = shared.client
        self.kept: Final = Kept(client.clock)
        self._reading = shared.reading
        self._rendering = rendering
        self._pages = pages
        self.watchers = Subscribers[Watched, Watcher](self._look, spawn=shared.spawn, name="windlass dashboard")
        self._mistaken: set[str] = set()
        """Pages whose last look ended by a mistake: the log tells of each once, not every second."""

    async def _look(self) -> None:
        # what several pages need is asked for once in an interval
        memo = Memo()
        line = self.watchers.by_key
        for watched in list(islice(line, MOST_LOOKS)):
            await self._look_at(watched, memo)
            if (watchers := line.pop(watched, None)) is not None:
                # to the end of the line
                line[watched] = watchers
        await self._client.clock.sleep(INTERVAL)

    async def _look_at(self, watched: Watched, memo: Memo) -> None:
        # a store may try for long by itself before it says that nobody is there
        late = self._client.clock.call_later(LATE, self._be_late)
        try:
            regions = await call_with_timeout(self._regions(watched, memo), PATIENCE, self._client.clock)
        except WindlassError as error:
            self._miss(watched, str(error))
        except TimeoutError:
            self._miss(watched, f"the store has not answered for {PATIENCE:g} seconds: it is asked again")
        except Exception:
            if watched.page not in self._mistaken:
                logger.exception("a page that is watched could not be made: %s", watched.page)
            self._mistaken.add(watched.page)
            self._miss(watched, "this process made a mistake: its log tells which")
        else:
            self._mistaken.discard(watched.page)
            for watcher in self.watchers.of(watched):
                watcher.see(regions)
        finally:
            late.cancel()

    def _be_late(self) -> None:
        for watcher in self.watchers:
            watcher.miss_for_now(f"the store has not answered for {LATE:g} seconds")

    def _miss(self, watched: Watched, why: str) -> None:
        for watcher in self.watchers.of(watched):
            watcher.miss(why)

    async def _regions(self, watched: Watched, memo: Memo) -> dict[str, str]:
        page = self._pages[watched.page]
        async with self._reading.page(_WATCHERS, 0) as reading:
            looker = watched.looker
            seen = Seen(self._client, looker, job_id=watched.job_id, memo=memo, kept=self.kept, reading=reading)
            facts = await page.facts(seen, watched.query)
        frame = Frame(watched.root, page.name, page.title, watched.looker)
        return self._rendering.regions(frame, facts, page.regions)
