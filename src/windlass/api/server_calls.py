"""What is asked and told about servers."""

from typing import Annotated

from msgspec import Meta

from windlass.api.looks import Server
from windlass.api.shape import Asked, Seconds, Told


class ServersTold(Told, kw_only=True):
    """Every server that has not taken itself out."""

    servers: list[Server]


class BeatAsked(Asked, kw_only=True):
    """That a server is live."""

    server: Server


class LeaveAsked(Asked, kw_only=True):
    """A server that has stopped."""

    id: Annotated[str, Meta(min_length=1, max_length=300)]


class StrandedAsked(Asked, kw_only=True):
    """After how many seconds of silence a server counts as gone."""

    dead_after: Seconds = 60.0
