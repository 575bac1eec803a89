"""What is asked and told about claims, where it is no record of its own."""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from windlass.api.calls import MOST_JOBS
from windlass.api.carried_call import PlainCall, concatenated, pages_of
from windlass.api.claims import (
    Ending,
    Held,
    Note,
    Renewed,
    Settled,
    Stop,
    Wait,
    note_asked,
    note_of,
    renewed_of,
    renewed_told,
)
from windlass.api.shape import Asked, Seconds, Told
from windlass.core import job as core_job
from windlass.core.commands import RenewClaims, WriteNotes
from windlass.core.duration import duration
from windlass.core.ids import JobId, job_id


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


def claims_held(written: Sequence[Held]) -> list[tuple[JobId, core_job.Token]]:
    """Return the jobs and tokens of claims."""
    return [(job_id(each.id), core_job.Token(each.token)) for each in written]


RENEW: Final = PlainCall(
    RenewClaims,
    RenewAsked,
    RenewTold,
    request=lambda command: RenewAsked(
        claims=[Held(id=job_id, token=token) for job_id, token in command.claims], lease=command.lease.total_seconds()
    ),
    read=lambda asked: RenewClaims(claims_held(asked.claims), duration(asked.lease, "lease")),
    response=lambda _, renewed: RenewTold(renewed=[None if each is None else renewed_told(each) for each in renewed]),
    reply=lambda told: [None if one is None else renewed_of(one) for one in told.renewed],
    parts=pages_of("claims", concatenated),
)
NOTE: Final = PlainCall(
    WriteNotes,
    NoteAsked,
    NoteTold,
    request=lambda command: NoteAsked(notes=[note_asked(note) for note in command.notes]),
    read=lambda asked: WriteNotes([note_of(each) for each in asked.notes]),
    response=lambda _, written: NoteTold(written=list(written)),
    reply=lambda told: told.written,
    parts=pages_of("notes", concatenated),
)
