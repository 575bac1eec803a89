"""What is asked and told about claims, where it is no record of its own."""

from typing import Annotated

from msgspec import Meta

from windlass.api.calls import MOST_JOBS
from windlass.api.claims import Ending, Held, Note, Renewed, Settled, Stop, Wait
from windlass.api.shape import Asked, Seconds, Told


class SettleAsked(Asked, kw_only=True):
    """How claims ended, each as one step of its own."""

    settlements: Annotated[list[Ending], Meta(max_length=MOST_JOBS)]


class SettleTold(Told, kw_only=True):
    """What each settlement did, in their order."""

    settled: list[Settled]


class RenewAsked(Asked, kw_only=True):
    """Claims that are to hold for `lease` seconds from now."""

    claims: Annotated[list[Held], Meta(max_length=MOST_JOBS)]
    lease: Seconds


class RenewTold(Told, kw_only=True):
    """Each claim in their order, null where the token no longer holds."""

    renewed: list[Renewed | None]


class NoteAsked(Asked, kw_only=True):
    """What running jobs report of themselves."""

    notes: Annotated[list[Note], Meta(max_length=MOST_JOBS)]


class NoteTold(Told, kw_only=True):
    """Whether each was written: false where the token no longer holds; null where the job is locked: try again."""

    written: list[bool | None]


class StopsAsked(Asked, kw_only=True):
    """Claims whose holder wants to know when one should stop."""

    claims: Annotated[list[Held], Meta(max_length=MOST_JOBS)]
    wait: Wait = 0.0


class StopsTold(Told, kw_only=True):
    """The claims that should stop; none when the time was over."""

    stops: list[Stop]
