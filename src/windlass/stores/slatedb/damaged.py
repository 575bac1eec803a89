"""What cannot be read, and is in nobody's way.

A job whose record is damaged is left where it is, and told to whoever asks for it. A unique key or a lock of which
nobody knows who holds it is free.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.stores.slatedb import keys

R = TypeVar("R")

logger: Final = logging.getLogger("windlass.slatedb")
MOST_TOLD: Final = 10_000
_told: Final[dict[JobId, None]] = {}
"""The jobs that the log of this process names, however often the database is opened."""


def lacks_a_part(job_id: JobId) -> StoreCorrupt:
    """Return the error of whoever reads a record that is torn."""
    return StoreCorrupt(f"the record of job {job_id} lacks a part: restore the store from a backup", job_id=job_id)


def lacks_its_record(job_id: JobId) -> StoreCorrupt:
    """Return the error of whoever finds the place of a job and no record."""
    return StoreCorrupt(
        f"job {job_id} stands in line without its record: restore the store from a backup", job_id=job_id
    )


def cannot_be_read(job_id: JobId, why: Exception) -> StoreCorrupt:
    """Return the error of whoever reads a record that makes no sense."""
    return StoreCorrupt(
        f"the record of job {job_id} cannot be read ({why}): restore the store from a backup", job_id=job_id
    )


def free_if_damaged(decode: Callable[[bytes], R], value: bytes, what: str) -> R | None:
    """Return who holds something; nobody where that cannot be read: nobody could ever let go of it."""
    try:
        return decode(value)
    except ValueError as error:
        logger.error("who holds %s cannot be read (%s): it is free from now on", what, error)  # noqa: TRY400 - it says why
        return None


class Damaged:
    """The damaged jobs that an owner has come across; nobody else writes, so what is damaged stays so."""

    def __init__(self) -> None:
        """Begin with none."""
        self._why: dict[JobId, str] = {}
        self.id_bytes: set[bytes] = set()
        """Their ids, as the keys that name them end."""

    def __bool__(self) -> bool:
        """Whether there are any, as there are hardly ever."""
        return bool(self._why)

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._why

    def add(self, found: Mapping[JobId, StoreCorrupt]) -> None:
        """Know these from now on, and say so once."""
        for job_id, error in found.items():
            self._why[job_id] = str(error)
            self.id_bytes.add(keys.id_bytes(job_id))
            if job_id not in _told:
                _told[job_id] = None
                logger.error("a job is left where it is, and no worker is given it: %s", error)
        while len(_told) > MOST_TOLD:
            del _told[next(iter(_told))]

    def error(self, job_id: JobId) -> StoreCorrupt | None:
        """Return what whoever asks for this job is told, if it is damaged."""
        why = self._why.get(job_id)
        return None if why is None else StoreCorrupt(why, job_id=job_id)

    def refuse(self, ids: Iterable[JobId]) -> None:
        """Raise `StoreCorrupt` for the first of these jobs that is damaged."""
        for job_id in ids if self._why else ():
            if (error := self.error(job_id)) is not None:
                raise error
