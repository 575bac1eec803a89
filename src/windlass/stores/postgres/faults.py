"""Postgres' errors in our words, and what each means for the call that met it."""

import errno
import socket
import ssl
from enum import Enum, auto
from typing import Final

import asyncpg

from windlass.core.errors import (
    SchemaMissing,
    StoreCorrupt,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    WindlassError,
)
from windlass.kit.reaching import is_refused


class Fault(Enum):
    """What an error means for the call that met it."""

    LOST = auto()
    """The connection is gone, or nobody can tell: what was under way may or may not have been done."""
    TRANSIENT = auto()
    """Rolled back for sure, by the chance of the moment: worth repeating at once."""
    STALE = auto()
    """Not done, since this connection no longer fits the server: repeat with a new one."""
    FINAL = auto()
    """Not done, and repeating at once would end the same."""


_KINDS: Final = {
    "40001": Fault.TRANSIENT,  # serialization failure
    "40P01": Fault.TRANSIENT,  # deadlock
    "40003": Fault.LOST,  # statement completion unknown
    "25006": Fault.STALE,  # read-only: after a failover this is the old primary
    "26000": Fault.STALE,  # unknown prepared statement: a pooler has swapped the connection
    "42P05": Fault.STALE,  # prepared statement exists already: as 26000
    "25P03": Fault.LOST,  # idle in transaction for too long: the server has hung up
    "53300": Fault.LOST,  # too many connections: no call was taken
    "57P01": Fault.LOST,  # administrator's shutdown or pg_terminate_backend
    "57P02": Fault.LOST,  # crash of another session
    "57P03": Fault.LOST,  # starting up or shutting down
    "57P05": Fault.LOST,  # idle session timeout
}
_LOST_CLASS: Final = "08"
_LOCK_TIMEOUT: Final = "55P03"
_OF_VALUES: Final = {
    "22",  # data exception
    "23",  # integrity constraint violation
    "44",  # check option of a view
    "54",  # program limit exceeded
    "P0",  # raised by a trigger
}
_CACHED_PLAN: Final = "RevalidateCachedQuery"
_RECEIPTS: Final = "windlass_receipt_pkey"
_JOB_IDS: Final = "windlass_job_id_key"
_OURS: Final = "windlass_"
_ID_TAKEN: Final = ("22P02", "Windlass: another job has an id of this batch")
"""How the statements of an enqueue fail, in any language of the server: by a text that is no number."""
_ANOTHER_HOLDS: Final = (
    "another transaction, one of your own with ctx.transaction() or connection= perhaps, holds a row or a key that is "
    "needed: end it (pg_stat_activity shows who is idle in transaction), then try again"
)


def kind(error: BaseException) -> Fault:
    """Return what `error` means for the call that met it."""
    if isinstance(error, WindlassError):
        return Fault.FINAL
    code = sqlstate(error)
    if code is not None:
        if code.startswith(_LOST_CLASS):
            return Fault.LOST
        if _is_outdated_plan(error, code):
            return Fault.STALE
        if code == "23505" and getattr(error, "constraint_name", None) == _JOB_IDS:
            # another transaction has brought this id at the same moment: the next look finds it
            return Fault.TRANSIENT
        return _KINDS.get(code, Fault.FINAL)
    if isinstance(error, ssl.CertificateError | asyncpg.DataError | asyncpg.ClientConfigurationError):
        return Fault.FINAL
    if _cannot_encrypt(error):
        return Fault.FINAL
    return Fault.LOST if _is_of_the_connection(error) else Fault.FINAL


def is_already_done(error: BaseException) -> bool:
    """Whether a receipt says that this very call was done before."""
    return sqlstate(error) == "23505" and getattr(error, "constraint_name", None) == _RECEIPTS


def has_waited_in_vain(error: StoreUnavailable) -> bool:
    """Whether a transaction that stays open holds what was needed."""
    return error.__cause__ is not None and sqlstate(error.__cause__) == _LOCK_TIMEOUT


def is_id_taken(error: StoreUnavailable) -> bool:
    """Whether jobs that share a statement were not enqueued since another job may have the id of one of them."""
    code, text = _ID_TAKEN
    return error.__cause__ is not None and sqlstate(error.__cause__) == code and text in str(error.__cause__)


def refuses_what_was_written(error: StoreUnavailable) -> bool:
    """Whether Postgres has refused some values for themselves, as by a constraint or a trigger, and not the call."""
    code = None if error.__cause__ is None else sqlstate(error.__cause__)
    return code is not None and code[:2] in _OF_VALUES


def sqlstate(error: BaseException) -> str | None:
    """Return the five characters by which Postgres names `error`, if the error came from there."""
    code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    return code if isinstance(code, str) else None


def translate(error: BaseException, where: str) -> WindlassError:
    """Return what `error` means for a caller, and what to do about it, with `error` as its cause."""
    if isinstance(error, WindlassError):
        return error
    code = sqlstate(error)
    fault = _of_the_driver(error, where) if code is None else _of_the_server(error, code, where)
    # without the driver's frames, which would keep a connection open for as long as somebody keeps the error
    ours = code is None and kind(error) is Fault.FINAL
    fault.__cause__ = error if ours else error.with_traceback(None)
    return fault


def _of_the_server(error: BaseException, code: str, where: str) -> WindlassError:
    text = _text(error)
    match code:
        case "25006":
            return StoreReadOnly(
                f"{where} takes no writes ({text}): it is a standby, or this role may only read; name the primary in "
                "the URL, or all servers parted by commas",
                retryable=True,
            )
        case "53100":
            return StoreFull(f"the disk under {where} is full: make room and try again", retryable=True)
        case "XX001" | "XX002":
            return StoreCorrupt(f"{where} is damaged ({text}): restore it from a backup; nothing was changed")
        case "42P01" | "3F000" | "42703" | "42883":
            return _without_schema(text, code, where)
        case "42501":
            return StoreUnavailable(
                f"the role may not do this in {where} ({text}): grant it the rights that howto/migrate-a-store.md in "
                "the docs lists, also for the tables of the last migration, or use another role"
            )
        case "3D000":
            return StoreUnavailable(f"there is no {where}: create the database, or correct the name in the URL")
        case "53300":
            return StoreUnavailable(
                f"{where} has no connection left ({text}): lower ?connections=, raise max_connections, or put a pooler "
                "before it",
                retryable=True,
            )
        case "57P03":
            return StoreUnavailable(f"{where} is starting up or shutting down ({text}): try again", retryable=True)
        case "55P03" | "57014" | "25P04":
            return StoreUnavailable(f"{where} gave up waiting ({text}): {_ANOTHER_HOLDS}", retryable=True)
        case "40001" | "40P01":
            return StoreUnavailable(f"{where} kept refusing because of other transactions ({text})", retryable=True)
        case "53200" | "53400" | "53000" | "58030" | "58000":
            return StoreUnavailable(f"{where} is out of means ({text}): look at its log", retryable=True)
        case "28P01":
            return StoreUnavailable(
                f"{where} refused to let us in ({text}): check user and password, in the URL or where else they come "
                "from: PGPASSWORD, a passfile, a service"
            )
        case _ if code.startswith("28"):
            return StoreUnavailable(
                f"{where} refused to let us in ({text}): check user, password and database of the URL, whether it must "
                "say sslmode=require, and pg_hba.conf"
            )
        case _ if kind(error) in (Fault.LOST, Fault.STALE):
            return StoreUnavailable(f"the connection to {where} was lost ({text}): try again", retryable=True)
        case _:
            return StoreUnavailable(f"{where} failed ({code}: {text})")


def _without_schema(text: str, code: str, where: str) -> WindlassError:
    if code == "3F000" or _OURS in text:
        return SchemaMissing(
            f"{where} does not hold the tables that this release works with ({text}): run `windlass migrate`, or name "
            "the schema that has them with ?schema=, or put it on the role's search_path"
        )
    return StoreUnavailable(f"{where} failed ({code}: {text})")


def _of_the_driver(error: BaseException, where: str) -> WindlassError:
    text = _text(error)
    match error:
        case ssl.CertificateError():
            return StoreUnavailable(_of_the_certificate(error, where))
        case ssl.SSLError():
            return StoreUnavailable(
                f"no encrypted connection to {where} ({text}): check sslmode, ssl_min_protocol_version and "
                "ssl_max_protocol_version of the URL, and the certificates of both sides",
                retryable=True,
            )
        case OSError() if _cannot_encrypt(error):
            return StoreUnavailable(
                f"{where} does not encrypt ({text}), and the URL asks for it: set up TLS there, or give another sslmode"
            )
        case TimeoutError():
            return StoreUnavailable(
                f"{where} did not answer in time: the network or the server is too slow, or {_ANOTHER_HOLDS}",
                retryable=True,
            )
        case socket.gaierror():
            return StoreUnavailable(
                f"the host of {where} is not known ({text}): check its name in the URL", retryable=True
            )
        case _ if is_refused(error):
            return StoreUnavailable(
                f"nothing listens for {where}: start the server, or check host and port", retryable=True
            )
        case FileNotFoundError():
            return StoreUnavailable(
                f"there is no socket or file for {where} ({text}): start the server, or check the URL", retryable=True
            )
        case OSError() if error.errno in (errno.EACCES, errno.EPERM):
            return StoreUnavailable(f"this user may not reach {where} ({text})")
        case asyncpg.TargetServerAttributeNotMatched():
            return StoreReadOnly(f"no server of {where} takes writes now: all are standbys", retryable=True)
        case asyncpg.ClientConfigurationError():
            return StoreUnavailable(f"the driver cannot connect to {where}: {text}")
        case _ if kind(error) is Fault.LOST:
            return StoreUnavailable(f"the connection to {where} was lost ({text}): try again", retryable=True)
        case _:
            return StoreUnavailable(f"{where} failed: {error!r}")


def _of_the_certificate(error: ssl.SSLCertVerificationError, where: str) -> str:
    # an error that no handshake has made has neither
    text = getattr(error, "verify_message", None) or _text(error)
    match getattr(error, "verify_code", None):
        case 62 | 64:  # of a host name, of an address
            return (
                f"the certificate of {where} is for another host ({text}): name the host in the URL as the certificate "
                "does; ?sslmode=verify-ca does not look at the name"
            )
        case 9 | 10:  # not yet, no longer
            return f"the certificate of {where} is not valid now ({text}): renew it, or set the clock of this machine"
        case _:
            return (
                f"the certificate of {where} is not trusted ({text}): give the certificate of who signed it by "
                "?sslrootcert="
            )


def _cannot_encrypt(error: BaseException) -> bool:
    return isinstance(error, ConnectionError) and "rejected SSL upgrade" in str(error)


def _is_outdated_plan(error: BaseException, code: str) -> bool:
    if code != "0A000":
        return False
    # by the function that raises it: the message is in the server's language
    return getattr(error, "server_source_function", None) == _CACHED_PLAN or "cached plan" in str(error)


def _is_of_the_connection(error: BaseException) -> bool:
    if isinstance(error, OSError | EOFError | asyncpg.InterfaceError | asyncpg.InternalClientError):
        return True
    # a caller's own driver: these two say that the connection, not the statement, is at fault
    return type(error).__name__ in {"OperationalError", "InterfaceError"}


def _text(error: BaseException) -> str:
    """Return what it says in one line; a detail may hold a value of somebody's row."""
    said = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    return " ".join(said.split()) or type(error).__name__
