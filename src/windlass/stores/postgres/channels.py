"""How news travels through Postgres: which channels a store has, and what is written into them."""

import hashlib
import json
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple, cast

import msgspec

from windlass.core.topics import Topic, queue_topic

_MOST_BYTES: Final = 7_000  # Postgres takes 8,000
_QUEUES: Final = queue_topic("")


class Channels(NamedTuple):
    """Where a store tells that jobs are ready, and where it tells all else."""

    ready: str
    other: str


def channels_of(store_id: str) -> Channels:
    """Return the channels of a store: the same for all who use it, whatever they call its schema."""
    name = hashlib.blake2b(store_id.encode(), digest_size=6).hexdigest()
    return Channels(f"windlass_{name}_ready", f"windlass_{name}_other")


def letters(channels: Channels, topics: Iterable[Topic]) -> list[tuple[str, str]]:
    """Return what has to be sent, and through which channel, to tell of `topics`."""
    ready, other = list[Topic](), list[Topic]()
    for topic in topics:
        (ready if topic.startswith(_QUEUES) else other).append(topic)
    both = (channels.ready, ready), (channels.other, other)
    return [(channel, _payload(news)) for channel, news in both if news]


def topics_in(payload: str) -> list[Topic] | None:
    """Return what a letter tells of; None when it may be anything."""
    try:
        told: object = json.loads(payload)
    except ValueError:
        return None
    if not isinstance(told, list) or not told:
        return None
    return [Topic(str(topic)) for topic in cast("list[object]", told)]


def _payload(topics: Collection[Topic]) -> str:
    text = msgspec.json.encode(sorted(topics)).decode()
    return text if len(text) <= _MOST_BYTES else "[]"
