"""Job ids: UUIDv7, made by the client before the first try, so that a repeated enqueue is one job."""

from typing import Final, NewType
from uuid import UUID

from windlass.core.errors import InvalidValue

JobId = NewType("JobId", str)
"""A UUID in its canonical text form."""

ID_BYTES: Final = 10
"""How much randomness one id takes."""
_VARIANT: Final = "89ab"


def new_ids(count: int, *, millis: int, randomness: bytes) -> list[JobId]:
    """Make `count` UUIDv7 for the time `millis` after the epoch, from 10 bytes of `randomness` each."""
    stamp = f"{millis:012x}"
    head = f"{stamp[:8]}-{stamp[8:]}-7"
    hexes = randomness.hex()
    made = [_uuid7(head, hexes[at : at + 20]) for at in range(0, 20 * count, 20)]
    # ids of one batch rise with its order, so that an index over them grows at its end
    made.sort()
    return made


def _uuid7(head: str, digits: str) -> JobId:
    variant = _VARIANT[int(digits[3], 16) & 3]
    return JobId(f"{head}{digits[:3]}-{variant}{digits[4:7]}-{digits[7:19]}")


def job_id(value: object) -> JobId:
    """Return a caller's id in canonical form; refuse what is no UUID."""
    if isinstance(value, UUID):
        return JobId(str(value))
    if not isinstance(value, str):
        message = f"a job id is a UUID or its text, not {type(value).__name__}"
        raise InvalidValue(message)
    try:
        return JobId(str(UUID(value)))
    except ValueError:
        message = f"a job id is a UUID, not {value[:60]!r}"
        raise InvalidValue(message) from None
