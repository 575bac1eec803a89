"""What a parent and its children say to each other: one JSON object on a line."""

from typing import Final, TypeAlias

import msgspec


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is to do: the first line that it reads. `flags` are texts as they were typed."""

    app: str
    flags: dict[str, str]
    processes: int
    grace: float
    log_format: str
    log_level: str
    metrics: int | None = None
    """The descriptor of the port that it serves its metrics on."""


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The app is there, and this is what will be served; of the store nothing secret is shown."""

    store: str
    concurrency: int
    queues: list[str]
    kinds: list[str]
    schedules: list[str]
    own_queues: list[str]
    """The queues that handlers are for."""

    @property
    def strange_queues(self) -> list[str]:
        """The queues that are worked although no handler is for them."""
        return [queue for queue in self.queues if queue not in self.own_queues]


class Begins(msgspec.Struct, frozen=True, tag="begins"):
    """From now on there may be claims of this server."""

    server: str


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The server works."""


class Reported(msgspec.Struct, frozen=True, tag="health"):
    """How the server is, told when it changes."""

    ready: bool
    reasons: list[str]
    replace: bool


class Rescued(msgspec.Struct, frozen=True, tag="rescued"):
    """What a server held that has ended is given back."""

    server: str


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The child cannot work, nor could another: the command should end with this exit code."""

    message: str
    exit_code: int


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Stop gracefully, within so many seconds; when it is `replaced`, the port of its metrics is another one's."""

    grace: float
    replaced: bool = False


class StopNow(msgspec.Struct, frozen=True, tag="stop now"):
    """Stop without any grace, also if a stop is under way."""


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The process of this server has ended: the parent has seen it."""

    server: str


ToParent: TypeAlias = Loaded | Begins | Ready | Reported | Rescued | Failed
ToChild: TypeAlias = Stop | StopNow | Ended

encode: Final = msgspec.json.Encoder().encode
decode_to_parent: Final = msgspec.json.Decoder[ToParent](ToParent).decode
decode_to_child: Final = msgspec.json.Decoder[ToChild](ToChild).decode
decode_order: Final = msgspec.json.Decoder[Order](Order).decode
