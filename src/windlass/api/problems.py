"""Errors, as the API tells them: the name of the error, what happened and what to do, and its facts."""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from windlass.api.shape import Told
from windlass.core import errors

Fact: TypeAlias = str | int | float | bool | None

_STATUSES: Final[Mapping[type[errors.WindlassError], int]] = {
    errors.InvalidValue: 422,
    errors.EncodeError: 422,
    errors.DecodeError: 422,
    errors.JobNotFound: 404,
    errors.ScheduleNotFound: 404,
    errors.NotAllowed: 403,
    errors.StoreMoved: 410,
    errors.StoreUnavailable: 503,
    errors.ClientClosed: 503,
    errors.WindlassError: 409,
}
"""From the special to the general: an error has the status of the first that it is."""


class Problem(Told, kw_only=True):
    """Why a call was refused: `error` is for programs, `message` for people, and says what to do."""

    error: str
    message: str
    facts: dict[str, Fact] = {}


def problem_of(error: errors.WindlassError) -> Problem:
    """Return an error as it is told."""
    facts = {name: fact for name, fact in vars(error).items() if isinstance(fact, Fact)}
    return Problem(error=_name(type(error)), message=str(error), facts=facts)


def status_of(error: errors.WindlassError) -> int:
    """Return the status of a reply that tells this error."""
    return next(status for kind, status in _STATUSES.items() if isinstance(error, kind))


def error_of(problem: Problem) -> errors.WindlassError:
    """Return the error that was told, with its facts; one that is not known here is a `StoreUnavailable`."""
    kind = _KNOWN.get(problem.error)
    if kind is None:
        retryable = problem.facts.get("retryable") is True
        return errors.StoreUnavailable(f"{problem.message} ({problem.error})", retryable=retryable)
    # its own way of being made would put the message together again, from values that were not sent
    made = kind.__new__(kind)
    made.args = (problem.message,)
    if isinstance(made, errors.StoreUnavailable):
        made.retryable = False
    vars(made).update(problem.facts)
    return made


def _name(kind: type[errors.WindlassError]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def _kinds(kind: type[errors.WindlassError]) -> list[type[errors.WindlassError]]:
    return [kind, *(each for below in kind.__subclasses__() for each in _kinds(below))]


_KNOWN: Final[Mapping[str, type[errors.WindlassError]]] = {
    _name(kind): kind for kind in _kinds(errors.WindlassError) if kind.__module__ == errors.__name__
}
"""By name; nothing that is told is ever imported."""
