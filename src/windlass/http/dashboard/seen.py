"""One look at the store, for one page and one reader."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from windlass.api.operations import OPERATIONS
from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.core.clock import Clock
from windlass.core.errors import WindlassError
from windlass.core.ids import JobId
from windlass.core.stats import QueueStats
from windlass.core.store import Store
from windlass.http.auth import Identity
from windlass.http.payload_reading import Reading
from windlass.http.scoped_store import ScopedStore

_ROLES: Final = {operation.name: operation.roles for operation in OPERATIONS}


@dataclass(frozen=True, slots=True)
class Looker:
    """What somebody may do and see; all who are alike in that see the same."""

    roles: frozenset[Role]
    queues: frozenset[str] | None
    """The queues that they are limited to; None for all."""

    def may(self, operation: str) -> bool:
        """Whether they may call an operation of the API, so that a page offers it."""
        return Role.ADMIN in self.roles or not self.roles.isdisjoint(_ROLES[operation])


NOBODY: Final = Looker(frozenset(), frozenset())
"""Who reads a page that tells nothing of the store."""


def looker_of(identity: Identity) -> Looker:
    """Return who looks."""
    return Looker(identity.roles, identity.queues)


T = TypeVar("T")

MOST_KEPT: Final = 500
"""Answers that are kept at a time: a page of jobs is some hundred kilobytes."""


class Memo:
    """Answers of the store that several pages need at the same moment: each is asked for once, one page after another.

    Also that it did not answer is known then: who comes after does not wait for that again.
    """

    def __init__(self) -> None:
        self._answers: dict[Hashable, Any] = {}
        self._errors: dict[Hashable, WindlassError] = {}

    async def once(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer that is known by `key`, or ask."""
        if key in self._errors:
            raise self._errors[key]
        if key not in self._answers:
            try:
                self._answers[key] = await ask()
            except WindlassError as error:
                self._errors[key] = error
                raise
        return cast("T", self._answers[key])


class Kept:
    """Answers of the store that count for a while: what changes by the minute is not asked for each second.

    Of more than so many the oldest are forgotten: whoever asks for ever other things fills no memory.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: OrderedDict[Hashable, tuple[float, float, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    async def within(self, seconds: float, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer that is known by `key` and no older than `seconds`, or ask."""
        now = self._clock.monotonic()
        known = self._answers.get(key)
        if known is None or now - known[0] >= seconds:
            known = now, now + seconds, await ask()
            self._answers[key] = known
            self._answers.move_to_end(key)
            self._forget(now)
        return cast("T", known[2])

    def _forget(self, now: float) -> None:
        for key, (_, until, _) in list(self._answers.items()):
            if until <= now or len(self._answers) > MOST_KEPT:
                del self._answers[key]


class Seen:
    """What a page looks at: the store as far as its reader may see it."""

    def __init__(
        self,
        client: Client,
        looker: Looker,
        *,
        job_id: JobId | None = None,
        memo: Memo | None = None,
        kept: Kept,
        reading: Reading,
    ) -> None:
        self.client = client
        self.looker = looker
        self.job_id = job_id
        """The job that the path names."""
        self.kept = kept
        self.reading = reading
        """Where payloads are looked into."""
        queues = looker.queues
        self.store: Store = client.store if queues is None else ScopedStore(client.store, queues)
        self._memo = memo or Memo()

    async def queues(self) -> Sequence[QueueStats]:
        """Count jobs by queue and state; at one moment only once, whoever asks."""
        return await self._memo.once(("queues", self.looker.queues), self.store.stats)

    async def once(self, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what the store answers; at one moment only once for all who may see as much."""
        return await self._memo.once((what, self.looker.queues), ask)
