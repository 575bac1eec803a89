"""What attempts in this process were ended by, for whoever asks for their results: kept in tests alone."""

from typing import Final

from windlass.core.ids import JobId

MOST: Final = 100
"""Exceptions that are kept: each holds on to the frames that it went through."""

_kept: dict[JobId, BaseException] = {}


def keep(job: JobId, error: BaseException) -> None:
    """Remember what the last attempt of a job was ended by."""
    _kept.pop(job, None)
    _kept[job] = error
    while len(_kept) > MOST:
        _kept.pop(next(iter(_kept)), None)


def forget(job: JobId) -> None:
    """Remember nothing of a job any more."""
    _kept.pop(job, None)


def cause(job: JobId) -> BaseException | None:
    """Return what the last attempt of a job was ended by, if that was in this process and is still known."""
    return _kept.get(job)
