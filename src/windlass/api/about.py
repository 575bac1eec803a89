"""What serves here and whether it can, and who asks."""

from windlass.api.roles import Role
from windlass.api.shape import Moment, Told


class About(Told, kw_only=True):
    """What serves here, and who asks."""

    version: str
    serving: str
    """The id of the serving process: another one after each start."""
    atomic_across_queues: bool = True
    """Whether one call may touch several queues."""
    name: str
    roles: list[Role]
    queues: list[str] | None = None
    """The queues that the caller's token is limited to."""


class Health(Told, kw_only=True):
    """Whether this process can serve; the reasons why not are told to whoever has a token."""

    ready: bool
    reasons: list[str] = []


class SessionTold(Told, kw_only=True):
    """Who has logged in, and until when."""

    name: str
    roles: list[Role]
    expires_at: Moment
