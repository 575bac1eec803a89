"""What calls weigh: how many of them go out together, and when one is too large for the server."""

from collections.abc import Sequence
from typing import Final

from windlass.core.errors import InvalidValue
from windlass.core.job import PreparedJob
from windlass.core.requests import Settlement
from windlass.kit import weight

MOST_TOGETHER: Final = 1_000
"""Jobs or settlements in one script, unless one caller brings more: the server does nothing else meanwhile."""
BYTES_EACH: Final = 16 * 1024
"""Bytes that weigh as much as a job: as many as make up 16 MiB go out together."""
MOST_BYTES: Final = 256 * 1024 * 1024
"""Bytes in one request: of twice as many the server reads none, and hangs up."""


def weight_of_jobs(jobs: Sequence[PreparedJob]) -> int:
    """Return how much of `MOST_TOGETHER` an enqueue takes."""
    return weight.weight_of_jobs(jobs, bytes_each=BYTES_EACH)


def weight_of_settlements(settlements: Sequence[Settlement]) -> int:
    """Return how much of `MOST_TOGETHER` settlements take."""
    return weight.weight_of_settlements(settlements, bytes_each=BYTES_EACH)


def check_size(size: int) -> None:
    """Refuse a call that brings more bytes than one request may have, before anything is written."""
    if size > MOST_BYTES:
        message = (
            f"a call with {size:,} bytes is over the {MOST_BYTES:,} that Redis is sent at once: split it into several, "
            "or keep the data elsewhere and enqueue references to it"
        )
        raise InvalidValue(message)
