"""The settings of an app's clients, kept until the first of them is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from windlass.client.client import Client
from windlass.codec import JSON, Codec
from windlass.connect import connect
from windlass.core.clock import Clock, Rng
from windlass.core.duration import Duration
from windlass.core.names import MAX_PAYLOAD
from windlass.core.retry import RetryRule
from windlass.core.settings import UNSET, QueueSettings, Unset, resolve
from windlass.core.store import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What an app was told of its store and its clients; what is left out is as `connect` has it."""

    url: str | Store | None = None
    token: str | None = field(default=None, repr=False)
    max_attempts: int | Unset = UNSET
    lease: Duration | Unset = UNSET
    priority: int | Unset = UNSET
    retry: RetryRule | Unset = UNSET
    keep_succeeded: Duration | Unset | None = UNSET
    keep_dead: Duration | Unset | None = UNSET
    keep_cancelled: Duration | Unset | None = UNSET
    max_payload: int | Unset = UNSET
    keep_max: int | Unset | None = UNSET
    queues: Mapping[str, QueueSettings] = field(default_factory=dict[str, QueueSettings])
    poll_interval: Duration | Unset = UNSET
    worker: str | None = None
    codec: Codec = JSON
    clock: Clock | None = None
    rng: Rng | None = None

    def check(self) -> None:
        """Refuse what cannot mean anything; the URL is looked at when the store is made."""
        given = QueueSettings(
            self.max_attempts,
            self.lease,
            self.priority,
            self.retry,
            self.keep_succeeded,
            self.keep_dead,
            self.keep_cancelled,
        )
        resolve(given, self.queues, max_payload=_or(self.max_payload, MAX_PAYLOAD), keep_max=_or(self.keep_max, None))

    def connect(self, store: Store) -> Client:
        """Return a client of `store` with these settings."""
        return connect(
            store,
            max_attempts=self.max_attempts,
            lease=self.lease,
            priority=self.priority,
            retry=self.retry,
            keep_succeeded=self.keep_succeeded,
            keep_dead=self.keep_dead,
            keep_cancelled=self.keep_cancelled,
            max_payload=_or(self.max_payload, MAX_PAYLOAD),
            keep_max=self.keep_max,
            queues=self.queues,
            poll_interval=1.0 if isinstance(self.poll_interval, Unset) else self.poll_interval,
            worker=self.worker,
            codec=self.codec,
            clock=self.clock,
            rng=self.rng,
        )


def _or(given: T | Unset, default: T) -> T:
    return default if isinstance(given, Unset) else given
