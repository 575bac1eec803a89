"""What the engine and the object storage complain of: whether trying again helps, and what users are told."""

import logging
import re
import shutil
from typing import Final, cast

from slatedb.uniffi import CloseReason, Error
from slatedb.uniffi._slatedb_uniffi.slatedb import InternalError

from windlass.core.errors import Fenced, SchemaMissing, StoreCorrupt, StoreFull, StoreUnavailable, WindlassError
from windlass.stores.slatedb.address import Address

logger = logging.getLogger("windlass.slatedb")

ENGINE_ERRORS: Final = (cast("type[Exception]", Error), cast("type[Exception]", InternalError))
"""What calls of the engine raise; an `InternalError` is a panic."""
_STATUS: Final = re.compile(
    r"status code: (?P<status>[0-9]{3})[^:]*(?::.*?<Code>(?P<code>\w{1,64})</Code>)?", re.DOTALL
)
_MISSING: Final = "failed to find latest transactional object"
_EXISTS: Final = "transactional object (e.g. manifest) version already exists"
_DAMAGED: Final = "transactional object"
_NO_CREDENTIALS: Final = "169.254.169.254"
_FORBIDDEN: Final = {"401", "403"}
_TICK: Final = re.compile(r"invalid clock tick.*last_tick=`(?P<last>[0-9]+)`, next_tick=`(?P<next>[0-9]+)`", re.DOTALL)
_SKEWED: Final = "RequestTimeTooSkewed"
_WRONG: Final = {"301", "307", "400", "404", "405", "501"}
_MOST_SHOWN: Final = 300
_MIB: Final = 1 << 20
LEAST_FREE: Final = 8 * _MIB
"""Bytes on the disk of a folder that are too few: an object may need so many, and more are written at once."""
MAY_BE_DONE: Final = "what was asked may still be done"
NOT_BEGUN: Final = "nothing of what was asked was begun"
NOT_OPENED: Final = "was not opened"


def is_missing(error: BaseException) -> bool:
    """Whether there is no database: there is no manifest among the objects, or there are no objects."""
    return _MISSING in _said(error)


def is_fenced(error: BaseException) -> bool:
    """Whether another process has opened the database since."""
    return getattr(error, "reason", None) is CloseReason.FENCED


def no_database(address: Address) -> SchemaMissing:
    """Return the error of whoever may not make a database where none is."""
    return SchemaMissing(
        f"there is no database at {address.where}, and none is made by ?create=no or by who only looks: check the URL, "
        "or open it once without"
    )


def fenced(address: Address) -> Fenced:
    """Return the error of whoever was the owner."""
    return Fenced(
        f"another process has taken {address.where} over: this one must stop; let others work through `windlass serve`"
    )


def forked(address: Address) -> StoreUnavailable:
    """Return the error of a process that was forked from one in which the engine was at work."""
    return StoreUnavailable(
        f"{address.where} cannot be used here: this process was forked from one that had a SlateDB store open, and has "
        "none of its threads; start it by spawn, open no such store before the fork, or work through `windlass serve`"
    )


def unexpected(error: Exception) -> StoreUnavailable:
    """Return the error of whoever was served when something of ours went wrong, which is logged."""
    logger.error("a call to the store failed unexpectedly: it is opened anew", exc_info=error)
    return StoreUnavailable(f"a call to the store failed unexpectedly: {error!r}")


def translate(error: BaseException, address: Address, became: str = MAY_BE_DONE) -> WindlassError:
    """Return the error that users see; what `became` of what was asked is told when it took too long."""
    if isinstance(error, WindlassError):
        return error
    made = _translated(error, address, became)
    made.__cause__ = error
    return made


def _translated(error: BaseException, address: Address, became: str) -> WindlassError:
    if is_fenced(error):
        return fenced(address)
    if isinstance(error, TimeoutError):
        return late(address, became)
    if is_missing(error):
        return no_database(address)
    where, said = address.where, _said(error)[:_MOST_SHOWN]
    kind = type(error).__name__
    if (tick := _TICK.search(said)) is not None:
        behind = (int(tick["last"]) - int(tick["next"])) / 1_000
        return StoreUnavailable(
            f"the clock of this machine is {behind:.0f} s behind the last write to {where}, and nothing can be written "
            "there before that time: set the clock by a time server, or wait for so long",
            retryable=True,
        )
    if _EXISTS in said:
        return StoreUnavailable(
            f"the database at {where} was made meanwhile by another process, or the list of its objects is behind: "
            "open it again",
            retryable=True,
        )
    if kind == "Data" or (kind == "Internal" and _DAMAGED in said):
        return StoreCorrupt(
            f"the database at {where} is damaged, or of another release of SlateDB: {said}; nothing was changed: bring "
            "its objects back from a copy"
        )
    match kind:
        case "Unavailable":
            return _unavailable(error, address)
        case "Closed":
            return StoreUnavailable(f"the database at {where} is closed: {said}; open it again", retryable=True)
        case "Invalid":
            return StoreUnavailable(f"{where} cannot be used: {said}: check the URL and {address.credentials}")
        case _:
            return StoreUnavailable(f"the engine of {where} failed: {said}; open it again", retryable=True)


def late(address: Address, became: str = MAY_BE_DONE) -> StoreUnavailable:
    """Return the error of whoever has waited to the deadline, with what became of what was asked.

    The engine tells nobody that a disk is full, and waits: the disk is asked.
    """
    told = f"{address.where} did not answer within {address.timeout:g} s, and {became}"
    if address.is_remote:
        advice = f"check that the bucket {address.bucket!r} can be reached, and {address.credentials}"
    elif (free := _free(address)) is not None and free < LEAST_FREE:
        message = f"{told}: its disk is full, with {free / _MIB:.1f} MiB free: free some, and all goes on by itself"
        return StoreFull(message, retryable=True)
    else:
        advice = "look whether its disk or the machine is overloaded"
    return StoreUnavailable(f"{told}: {advice}", retryable=True)


def _free(address: Address) -> int | None:
    """Return how many bytes this process may still write to the disk of a folder; None where nobody knows."""
    if address.kind != "file":
        return None
    try:
        return shutil.disk_usage(address.path).free
    except OSError:
        return None


def _unavailable(error: BaseException, address: Address) -> StoreUnavailable:
    if _NO_CREDENTIALS in _said(error):
        # where there are none the engine asks the machine for them, which only those of a cloud can give
        return StoreUnavailable(f"this process has no credentials for {address.where}: set {address.credentials}")
    found = _STATUS.search(_said(error))
    if found is None:
        return StoreUnavailable(
            f"{address.where} does not answer: check that it runs, and the endpoint of the URL, also whether it is "
            "http or https",
            retryable=True,
        )
    status, code = found["status"], found["code"]
    # of what a server says only the code: the rest may name keys
    said = f"it said {status}" + (f" {code}" if code else "")
    if code == "NoSuchBucket" or status == "404":
        return StoreUnavailable(f"there is no bucket {address.bucket!r} for {address.where}: make it ({said})")
    if code == _SKEWED:
        return StoreUnavailable(
            f"{address.where} refused the call, since the clock of this machine is wrong: set it, by a time server "
            f"best ({said})",
            retryable=True,
        )
    if status in _FORBIDDEN:
        return StoreUnavailable(f"{address.where} refused this process: check {address.credentials} ({said})")
    if status in _WRONG:
        return StoreUnavailable(f"{address.where} refused the call: check endpoint and region of the URL ({said})")
    return StoreUnavailable(f"{address.where} cannot answer now: {said}", retryable=True)


def _said(error: BaseException) -> str:
    return str(getattr(error, "message", error))
