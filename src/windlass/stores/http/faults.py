"""What the network and the server complain of: whether trying again helps, and what users are told."""

import re
import socket
import ssl
from collections.abc import Callable
from enum import Enum
from typing import Final, TypeAlias

from windlass.core.errors import Fenced, OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.kit.reaching import is_refused
from windlass.stores.http.options import Options
from windlass.stores.http.reply import NotHTTP, Reply, ReplyTooLarge

ReadProblem: TypeAlias = Callable[[bytes], WindlassError | None]
"""Makes an error of the body of a refusal; None where that does not tell one."""


class Fault(Enum):
    """What a call that met an error may do."""

    LOST = "lost"
    """The connection is gone, and nobody knows whether the call was done."""
    UNHEARD = "unheard"
    """Somebody between us and the serving process has no answer of it, and nobody knows whether the call was done."""
    TRANSIENT = "transient"
    """Nothing was done, and it may work soon."""
    FINAL = "final"
    """Trying again does not help."""


class Refused(Exception):
    """A call was answered by a refusal; `error` is what users are told."""

    def __init__(self, reply: Reply, fault: Fault, error: WindlassError) -> None:
        super().__init__(f"status {reply.status}")
        self.status = reply.status
        self.fault = fault
        self.error = error
        self.retry_after = _seconds(reply.retry_after)
        """Seconds that the server wants to be left alone for."""


_HUNG_UP: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_BUSY: Final = (408, 429, 502, 503, 504)
_BETWEEN: Final = (502, 503, 504)
"""What proxies say that got no answer, also after they have handed a call on."""
_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _INTERNAL, _MOVED = 400, 401, 403, 500, 300
_TOKEN: Final = "connect(token=...) or WINDLASS_TOKEN"  # noqa: S105 - how one is given
_DELAY: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?", re.ASCII)


def kind(error: BaseException) -> Fault:
    """Judge an error of a call, also one that was translated where a connection could not be had."""
    if isinstance(error, Refused):
        return error.fault
    if isinstance(error, WindlassError):
        return Fault.LOST if isinstance(error, StoreUnavailable) and error.retryable else Fault.FINAL
    if isinstance(error, ssl.SSLError):
        return Fault.LOST if isinstance(error, _HUNG_UP) else Fault.FINAL
    return Fault.LOST if isinstance(error, OSError) else Fault.FINAL


def leaves_doubt(error: BaseException) -> bool:
    """Whether a call that was sent and met this may have been done."""
    if isinstance(error, Refused):
        told = isinstance(error.error, OutcomeUnknown)
        return told or error.fault is Fault.UNHEARD or error.status == _INTERNAL
    return isinstance(error, ReplyTooLarge) or kind(error) is Fault.LOST


def refusal(reply: Reply, options: Options, read_problem: ReadProblem) -> Refused | None:
    """Return what a reply means that is not what was asked for; None for one that is."""
    ours = reply.serving is not None
    if reply.status < _MOVED and ours:
        return None
    told = read_problem(reply.body) if ours and reply.status >= _BAD_REQUEST else None
    if reply.status in _BUSY:
        return _busy(reply, options, told)
    if reply.status == _UNAUTHORIZED:
        return Refused(reply, Fault.FINAL, _unauthorized(options))
    return Refused(reply, Fault.FINAL, told or _meaning(reply, options))


def _busy(reply: Reply, options: Options, told: WindlassError | None) -> Refused:
    """Judge what mostly passes, unless the serving process knows better."""
    if isinstance(told, Fenced):
        # that process ends, and its callers do not: they wait for the next one. What it had begun may be done
        error = StoreUnavailable(
            f"{options.where} has lost its store to another process, and ends: start `windlass serve` there again, "
            "unless that other process is one",
            retryable=True,
        )
        return Refused(reply, Fault.UNHEARD, error)
    if isinstance(told, StoreUnavailable):
        # another release may tell less of it
        retryable = getattr(told, "retryable", False)
        return Refused(reply, Fault.TRANSIENT if retryable else Fault.FINAL, told)
    between = reply.status in _BETWEEN and reply.serving is None
    who = "a proxy before it answered" if between else "it answered"
    error = StoreUnavailable(
        f"{options.where} is not ready, or has too much to do ({who} with status {reply.status}): try again, and look "
        "at /health/ready there if it stays so",
        retryable=True,
    )
    return Refused(reply, Fault.UNHEARD if between else Fault.TRANSIENT, error)


def _unauthorized(options: Options) -> WindlassError:
    if options.token is None:
        return StoreUnavailable(f"{options.where} wants a token: give one by {_TOKEN}")
    return StoreUnavailable(
        f"{options.where} refused the token: it is wrong, or was taken back; give another by {_TOKEN}"
    )


def _meaning(reply: Reply, options: Options) -> WindlassError:
    if _MOVED <= reply.status < _BAD_REQUEST:
        # what follows a question mark may be a secret
        to = (reply.location or "elsewhere").partition("?")[0][:200]
        return StoreUnavailable(
            f"{options.where} answered with a redirection to {to!r}, which is not followed, since the token would be "
            "sent there too: if that is the place, write it in the URL"
        )
    if reply.status == _FORBIDDEN:
        return StoreUnavailable(
            f"{options.where} refused the call (status 403): the token needs a role that allows it, and Host must be "
            "a name that the server goes by"
        )
    if reply.serving is None and reply.status < _INTERNAL:
        return StoreUnavailable(
            f"what answers as {options.where} is not windlass serve (status {reply.status}): check host, port and path "
            "of the URL"
        )
    if reply.status >= _INTERNAL:
        return StoreUnavailable(f"{options.where} failed with status {reply.status}: its log says why", retryable=True)
    return StoreUnavailable(f"{options.where} refused the call with status {reply.status}: is it of another release?")


def translate(error: BaseException, where: str) -> WindlassError:
    """Return the error that users see."""
    if isinstance(error, WindlassError):
        return error
    if isinstance(error, Refused):
        return error.error
    made = _translated(error, where)
    made.__cause__ = error
    return made


def _translated(error: BaseException, where: str) -> WindlassError:
    text = str(error) or type(error).__name__
    if isinstance(error, NotHTTP):
        return StoreUnavailable(
            f"what answers as {where} is not windlass serve ({text}): check host and port of the URL, and whether it "
            "is https://"
        )
    if isinstance(error, ReplyTooLarge):
        return StoreUnavailable(f"of {where} {text}: ask for fewer at once")
    if isinstance(error, ssl.SSLCertVerificationError):
        return StoreUnavailable(f"{where} was not trusted: {text}: check ?tls_ca= and the name in its certificate")
    if isinstance(error, socket.gaierror):
        return StoreUnavailable(f"the host of {where} is not known here ({text}): check its name", retryable=True)
    if isinstance(error, ssl.SSLError) and kind(error) is Fault.FINAL:
        return StoreUnavailable(
            f"no encrypted connection to {where}: {text}: check whether it speaks TLS, or is http://, and whether it "
            "wants a certificate of ?tls_cert= and ?tls_key="
        )
    if is_refused(error):
        return StoreUnavailable(
            f"nothing listens where {where} should be: start `windlass serve` there, or check host and port of the URL",
            retryable=True,
        )
    if isinstance(error, OSError):
        return StoreUnavailable(
            f"{where} does not answer: {text}: check that it runs, host and port of the URL, and whether it is "
            "https://",
            retryable=True,
        )
    return StoreUnavailable(f"the call to {where} failed: {text}")


def _seconds(text: str | None) -> float:
    """Return for how long to wait; what is no number of seconds is no wish."""
    return float(text) if text is not None and _DELAY.fullmatch(text) else 0.0
