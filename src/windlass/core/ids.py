"""Job ids: UUIDv7, made by the client before the first try, so that a repeated enqueue is one job."""

import re
from typing import Final, NewType, cast
from uuid import UUID

from windlass.core.errors import InvalidValue

JobId = NewType("JobId", str)
"""A UUID in its canonical text form."""

ID_BYTES: Final = 10
"""How much randomness one id takes."""
_CANONICAL: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VARIANT: Final = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def new_id(*, millis: int, randomness: bytes) -> JobId:
    """Make one UUIDv7 for the time `millis` after the epoch, from 10 bytes of `randomness`."""
    stamp, h = f"{millis:012x}", randomness.hex()
    return JobId(f"{stamp[:8]}-{stamp[8:]}-7{h[:3]}-{_VARIANT[h[3]]}{h[4:7]}-{h[7:19]}")


def new_ids(count: int, *, millis: int, randomness: bytes) -> list[JobId]:
    """Make `count` UUIDv7 for the time `millis` after the epoch, from 10 bytes of `randomness` each."""
    stamp = f"{millis:012x}"
    head = f"{stamp[:8]}-{stamp[8:]}-7"
    h = randomness.hex()
    made = [
        f"{head}{h[at : at + 3]}-{_VARIANT[h[at + 3]]}{h[at + 4 : at + 7]}-{h[at + 7 : at + 19]}"
        for at in range(0, 20 * count, 20)
    ]
    # ids of one batch rise with its order, so that an index over them grows at its end
    made.sort()
    return cast("list[JobId]", made)


def job_id(value: object) -> JobId:
    """Return a caller's id in canonical form; refuse what is no UUID."""
    if isinstance(value, UUID):
        return JobId(str(value))
    if not isinstance(value, str):
        message = f"a job id is a UUID or its text, not {type(value).__name__}"
        raise InvalidValue(message)
    # taking it apart and writing it again costs ten times as much
    if _CANONICAL.fullmatch(value):
        return JobId(value)
    try:
        return JobId(str(UUID(value)))
    except ValueError:
        message = f"a job id is a UUID, not {value[:60]!r}"
        raise InvalidValue(message) from None
