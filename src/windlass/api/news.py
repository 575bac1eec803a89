"""News, as a stream tells them."""

from typing import Annotated

from msgspec import Meta

from windlass.api.shape import Asked, Told

_TOPIC = Meta(
    min_length=1,
    max_length=300,
    extra_json_schema={"pattern": "^(ends|flags|pauses|schedules|(queue|lock):[A-Za-z0-9_.:/@#-]{1,200})$"},
)


class NewsAsked(Asked, kw_only=True):
    """What is to be told of: `ends`, `flags`, `pauses`, `schedules`, `queue:NAME`, `lock:NAME`."""

    topic: Annotated[list[Annotated[str, _TOPIC]], Meta(min_length=1, max_length=1_000)]


class News(Told, kw_only=True):
    """Topics that have news; each event of the stream is one of these."""

    topics: list[str]
