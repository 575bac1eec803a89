"""Which dead jobs a button changes at once: how many these are, in words, and as the API is told of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from windlass.client.error_groups import ErrorGroup
from windlass.client.spoken import counted

Filter = Mapping[str, str | None]
"""What is given of queue, kind and type of error, by the names that the API has."""


@dataclass(frozen=True, slots=True)
class BulkChange:
    """Dead jobs that can be retried or deleted at once."""

    count: int
    is_exact: bool
    """Whether there are no more than that."""
    words: str
    """What they have in common, to stand behind `dead jobs`; perhaps empty."""
    body: Mapping[str, Any] | None
    """What the API is told; None where it is too long to stand on every page, and is asked for."""

    @property
    def meant(self) -> str:
        """What is changed, with its number: `at least 5,000 dead jobs in the queue mail`."""
        many = f"{'' if self.is_exact else 'at least '}{counted(self.count, 'dead job')}"
        return f"{many} {self.words}" if self.words else many


def all_of(given: Filter, count: int, *, is_exact: bool, newest_at: datetime) -> BulkChange:
    """Return the change of all dead jobs that match, up to the one that was enqueued last."""
    return BulkChange(count, is_exact, in_words(given), _matching(given, newest_at))


def group_of(given: Filter, group: ErrorGroup, *, is_whole: bool, with_ids: bool) -> BulkChange:
    """Return the change of the jobs of a group; one that no filter finds is changed as far as it was looked at."""
    words = in_words(given, group.name)
    if group.type is not None:
        return BulkChange(group.count, is_whole, words, _matching({**given, "error_type": group.type}, group.newest_at))
    looked_at = words if is_whole else f"{words}, those that were looked at"
    return BulkChange(group.count, is_exact=True, words=looked_at, body={"ids": group.ids} if with_ids else None)


def in_words(given: Filter, error: str | None = None) -> str:
    """Return what is meant: `with the error "E" in the queue Q of the kind K`."""
    parts = (
        ("with the error", None if error is None else f'"{error}"'),
        ("in the queue", given.get("queue")),
        ("of the kind", given.get("kind")),
    )
    return " ".join(f"{words} {name}" for words, name in parts if name is not None)


def _matching(given: Filter, newest_at: datetime) -> dict[str, Any]:
    # up to the newest that was seen: what comes while somebody thinks is not meant
    until = newest_at + timedelta(microseconds=1)
    chosen = {name: value for name, value in given.items() if value is not None}
    return {"filter": {"state": "dead", **chosen, "until": until.isoformat()}}
