"""What is asked and told about servers."""

from typing import Annotated, Final

from msgspec import Meta

from windlass.api.calls import (
    CountTold,
    NamesTold,
    Nothing,
    count_reply,
    count_response,
    empty_request,
    names_reply,
    names_response,
    nothing_reply,
)
from windlass.api.carried_call import CarriedCall, PlainCall
from windlass.api.looks import Server, server_of, server_told
from windlass.api.shape import Asked, Seconds, Told
from windlass.core.commands import RemoveServer, WriteHeartbeat
from windlass.core.duration import duration
from windlass.core.queries import CountStranded, ListEndedServers, ListServers


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


SERVERS: Final = PlainCall(
    ListServers,
    Nothing,
    ServersTold,
    request=empty_request,
    read=lambda _: ListServers(),
    response=lambda _, servers: ServersTold(servers=[server_told(server) for server in servers]),
    reply=lambda told: [server_of(one) for one in told.servers],
)
BEAT: Final = CarriedCall(
    WriteHeartbeat,
    BeatAsked,
    Nothing,
    request=lambda command: BeatAsked(server=server_told(command.server)),
    reply=nothing_reply,
)
LEAVE: Final = CarriedCall(
    RemoveServer,
    LeaveAsked,
    Nothing,
    request=lambda command: LeaveAsked(id=command.server_id),
    reply=nothing_reply,
)
ENDED: Final = PlainCall(
    ListEndedServers,
    Nothing,
    NamesTold,
    request=empty_request,
    read=lambda _: ListEndedServers(),
    response=names_response,
    reply=names_reply,
)
STRANDED: Final = PlainCall(
    CountStranded,
    StrandedAsked,
    CountTold,
    request=lambda query: StrandedAsked(dead_after=query.dead_after.total_seconds()),
    read=lambda asked: CountStranded(duration(asked.dead_after, "dead_after")),
    response=count_response,
    reply=count_reply,
)
