"""Errors in a caller's own transaction, in our words."""

from typing import Final

from windlass.core.errors import InvalidValue, OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.stores.postgres import faults

_MUST_ROLL_BACK: Final = "your transaction can only be rolled back now: begin it again"
_NO_TABLES: Final = ("42P01", "3F000")
_MADE_TO_FAIL: Final = ("40001", "40P01")


def translate(error: Exception, where: str, *, undone: bool) -> Exception:
    """Return what `error` means for a caller whose transaction it was met in; what is not of a driver stays as it is.

    `undone`: only our part of the transaction was, and the rest goes on.
    """
    code = faults.sqlstate(error)
    text = " ".join(str(error).split())
    if code is None:
        return _of_the_driver(error, text)
    if code == "25P02":
        message = f"an earlier statement of your transaction has failed, so Postgres takes no more: {_MUST_ROLL_BACK}"
        return InvalidValue(message)
    if code in _NO_TABLES:
        fault: WindlassError = InvalidValue(
            f"connection= finds no tables of Windlass on its search path ({text}), and the jobs are in {where}"
        )
    elif code in _MADE_TO_FAIL:
        fault = StoreUnavailable(f"another transaction was in the way ({text})", retryable=True)
    else:
        fault = faults.translate(error, where)
    if not undone:
        fault.args = (f"{fault}; {_MUST_ROLL_BACK}",)
    return fault


def is_doubtful(error: BaseException) -> bool:
    """Whether a commit that raised `error` may have been done all the same: unless Postgres itself has refused it."""
    if isinstance(error, WindlassError):
        return isinstance(error, OutcomeUnknown)
    return faults.sqlstate(error) is None or faults.kind(error) is faults.Fault.LOST


def _of_the_driver(error: Exception, text: str) -> Exception:
    """Tell a connection that was lost from one that is used wrongly, which every driver calls by the same names."""
    match type(error).__name__:
        case "OperationalError":
            message = f"connection= was lost, and your transaction with it ({text}): begin it again on another one"
            return StoreUnavailable(message, retryable=True)
        case "InterfaceError" | "ProgrammingError":
            return InvalidValue(f"connection= cannot be used: {text}")
        case _:
            return error
