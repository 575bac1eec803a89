"""What the system and the server complain of: whether trying again helps, and what users are told."""

import socket
import ssl
from enum import Enum
from typing import Final

import hiredis

from windlass.core.errors import StoreCorrupt, StoreFull, StoreMoved, StoreReadOnly, StoreUnavailable, WindlassError
from windlass.kit.reaching import is_refused
from windlass.stores.redis.line import Refused


class Fault(Enum):
    """What a call that met an error may do."""

    LOST = "lost"
    """The connection is gone, and nobody knows whether the call was done."""
    ELSEWHERE = "elsewhere"
    """Another server has to be asked: this one takes no writes, or does not have these keys."""
    TRANSIENT = "transient"
    """Nothing was done, and it may work soon."""
    FINAL = "final"
    """Nothing was done, and trying again does not help."""


class NotReplicated(ConnectionError):
    """Too few replicas have a write: it was done, and may be lost with the server."""

    def __init__(self, have_it: int, wanted: int) -> None:
        super().__init__(f"{have_it} of {wanted} replicas have the write")


_ELSEWHERE: Final = (
    "READONLY ",
    "MOVED ",
    "CLUSTERDOWN ",
    "MASTERDOWN ",
    "UNBLOCKED ",
    "WAIT cannot be used with replica",
)
_HUNG_UP: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_MOVED: Final = "STOREMOVED "
"""What a script says that would have begun something new in a store that was moved, before the place of its jobs."""
# A slot in motion asks to look elsewhere for what is not here. Some keys of ours are there and some are here, so nobody
# can run a script before all of them have arrived.
_TRANSIENT: Final = ("LOADING ", "BUSY ", "ASK ", "TRYAGAIN ", "NOSCRIPT ", "NOREPLICAS ")
_LOGIN: Final = (
    "NOAUTH ",
    "WRONGPASS ",
    "invalid password",
    "AUTH <password> called without any password",
    "Client sent AUTH, but no password is set",
)
_RIGHTS: Final = ("NOPERM ", "ACL failure in script: ", "The user executing the script can't ")
_IN_SCRIPT: Final = " on @user_script:"
"""What a server adds to an error that ended a script, with the line where it did."""
_NOT_BEGUN: Final = ("OOM ", "MISCONF", "READONLY ", "NOREPLICAS ")
"""What a script meets at its first write or not at all."""
_OF_A_VALUE: Final = ("WRONGTYPE ", "value is not an integer", "increment or decrement would overflow")
"""What a script meets at a key whose value is of another type than the store has written; no key is named."""
_TOO_MANY: Final = "max number of clients"
"""What a server says before it hangs up."""


def is_elsewhere(error: BaseException) -> bool:
    """Whether a node of a Cluster names another one that has the keys."""
    return isinstance(error, Refused) and error.code == "MOVED"


def is_of_login(error: Refused) -> bool:
    """Whether user or password were refused."""
    return str(error).startswith(_LOGIN)


def may_be_half_done(error: BaseException) -> bool:
    """Whether a script was cut off in the middle: what it had written stays."""
    text = str(error)
    return isinstance(error, Refused) and _IN_SCRIPT in text and not text.startswith(_NOT_BEGUN)


def kind(error: BaseException) -> Fault:
    """Judge an error of a call, also one that was translated where a connection could not be had."""
    if isinstance(error, WindlassError):
        return Fault.LOST if isinstance(error, StoreUnavailable) and error.retryable else Fault.FINAL
    if isinstance(error, Refused):
        return _kind_of_refusal(str(error))
    if isinstance(error, ssl.SSLError):
        return Fault.LOST if isinstance(error, _HUNG_UP) else Fault.FINAL
    return Fault.LOST if isinstance(error, OSError | EOFError) else Fault.FINAL


def _kind_of_refusal(text: str) -> Fault:
    if text.startswith(_ELSEWHERE):
        return Fault.ELSEWHERE
    if text.startswith(_TRANSIENT):
        return Fault.TRANSIENT
    return Fault.LOST if text.startswith(_TOO_MANY) else Fault.FINAL


def translate(error: BaseException, where: str) -> WindlassError:
    """Return the error that users see."""
    if isinstance(error, WindlassError):
        return error
    made = _translated(error, where)
    made.__cause__ = error
    return made


def _translated(error: BaseException, where: str) -> WindlassError:
    text = str(error)
    if text.startswith(_MOVED):
        return StoreMoved(text.removeprefix(_MOVED))
    if isinstance(error, ssl.SSLCertVerificationError):
        return StoreUnavailable(f"{where} was not trusted: {text}: check ?tls_ca= and the name in its certificate")
    if isinstance(error, ssl.SSLError) and not isinstance(error, _HUNG_UP):
        return StoreUnavailable(
            f"no encrypted connection to {where}: {text}: check whether it speaks TLS, and the files of ?tls_ca=, "
            "?tls_cert= and ?tls_key="
        )
    if text.startswith(_LOGIN):
        return StoreUnavailable(f"{where} refused user or password: check those in the URL ({text})")
    if text.startswith(_RIGHTS):
        return StoreUnavailable(
            f"{where} refused the user ({text}): give it the rights that howto/run-on-redis.md in the docs lists"
        )
    if text.startswith(_OF_A_VALUE):
        return StoreCorrupt(f"{where} has a key whose value is not of its type: {text}")
    if text.startswith("OOM "):
        return StoreFull(
            f"{where} has no memory left: raise its maxmemory, or keep fewer finished jobs", retryable=True
        )
    if text.startswith("MISCONF"):
        return StoreReadOnly(f"{where} takes no writes, since it cannot save them: {text}", retryable=True)
    if text.startswith("READONLY "):
        return StoreReadOnly(f"{where} takes no writes: it is a replica; name the master in the URL", retryable=True)
    if text.startswith(_TOO_MANY):
        return StoreUnavailable(
            f"{where} has too many clients: raise its maxclients, or lower ?connections=", retryable=True
        )
    if isinstance(error, NotReplicated):
        return StoreUnavailable(f"of {where} only {text}: connect more, or lower ?wait=", retryable=True)
    if is_elsewhere(error):
        return StoreUnavailable(
            f"the servers of {where} send these keys from one to another ({text}): all waits until they agree",
            retryable=True,
        )
    if text.startswith("ASK "):
        return StoreUnavailable(
            f"{where} is moving the slot of these keys: all waits until that is done", retryable=True
        )
    if text.startswith(("CLUSTERDOWN ", "MASTERDOWN ")):
        return StoreUnavailable(
            f"{where} has no server for these keys: {text}: look whether all of its masters are up", retryable=True
        )
    if isinstance(error, socket.gaierror):
        return StoreUnavailable(f"the host of {where} is not known here ({text}): check its name", retryable=True)
    if is_refused(error):
        return StoreUnavailable(
            f"nothing listens where {where} should be: start it, or check host and port of the URL", retryable=True
        )
    fault = kind(error)
    if fault is Fault.LOST:
        return StoreUnavailable(
            f"{where} does not answer: {text or type(error).__name__}: check that it runs, and host, port and TLS of "
            "the URL",
            retryable=True,
        )
    if isinstance(error, hiredis.ProtocolError):
        return StoreUnavailable(f"what answers as {where} is no Redis ({text}): check host, port and TLS of the URL")
    if text.startswith("unknown command 'SENTINEL'"):
        return StoreUnavailable(
            f"what answers as {where} is no Sentinel: name the Sentinels, whose port is mostly 26379, or write "
            "redis:// for one server"
        )
    if text.startswith("DB index is out of range"):
        return StoreUnavailable(f"{where} has no database of this number ({text}): name another at the end of the URL")
    return StoreUnavailable(f"{where} refused the call: {text}", retryable=fault is not Fault.FINAL)
