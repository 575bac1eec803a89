"""News, as a stream tells them."""

from typing import Annotated

from msgspec import Meta

from windlass.api.shape import Asked, Told


class NewsAsked(Asked, kw_only=True):
    """What is to be told of: `ends`, `flags`, `pauses`, `schedules`, `queue:NAME`, `lock:NAME`."""

    topic: Annotated[list[Annotated[str, Meta(min_length=1, max_length=300)]], Meta(min_length=1, max_length=1_000)]


class News(Told, kw_only=True):
    """Topics that have news; each event of the stream is one of these."""

    topics: list[str]
