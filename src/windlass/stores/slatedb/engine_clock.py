"""The engine's clock: that of the machine, whatever the store goes by. It takes no write from before the last one.

It waits a few seconds, and refuses then: a machine whose clock is behind that of the last owner cannot be the next one.
"""

import logging
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import msgspec

from windlass.core.duration import ZERO
from windlass.core.errors import StoreUnavailable
from windlass.kit.damage import DECODE_ERRORS
from windlass.stores.slatedb.address import Address

logger: Final = logging.getLogger("windlass.slatedb")


class Last(msgspec.Struct, frozen=True):
    """When an owner wrote last, about, by the clock of its machine, and which ownership that was."""

    written_at: Annotated[datetime, msgspec.Meta(tz=True)]
    ownership: str = ""


_decoder = msgspec.json.Decoder(Last)


def encode(ownership: str) -> bytes:
    """Return the record that goes with what is written now."""
    return msgspec.json.encode(Last(_now(), ownership))


def decode(record: bytes) -> Last | None:
    """Return when was written last, and by whom; None where that cannot be read."""
    try:
        return _decoder.decode(record)
    except DECODE_ERRORS as error:
        logger.error("when the database was written last cannot be read: %s", error)  # noqa: TRY400 - it says why
        return None


def behind(record: bytes | None, otherwise: datetime | None = None) -> timedelta:
    """Return how far the clock of this machine is behind the last write, as a record or else `otherwise` tells it."""
    last = None if record is None else decode(record)
    written_at = otherwise if last is None else last.written_at
    return ZERO if written_at is None else max(ZERO, written_at - _now())


def check_clock(address: Address, lag: timedelta) -> None:
    """Raise `StoreUnavailable` if a lag cannot be waited out within the deadline of a call."""
    if lag.total_seconds() > address.timeout:
        message = (
            f"the clock of this machine is {lag.total_seconds():.0f} s behind that of the machine which wrote to "
            f"{address.where} last, and nothing can be written there before that time: set both by a time server, or "
            "wait for so long; who owns the store was let alone"
        )
        raise StoreUnavailable(message, retryable=True)


def _now() -> datetime:
    return datetime.now(UTC)
