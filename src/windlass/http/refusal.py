"""A request that is refused: its status, and the problem that says why and what to do."""

from collections.abc import Mapping
from math import ceil
from typing import Final, NoReturn

from windlass.api.problems import Fact, Problem, problem_of
from windlass.core.errors import NotAllowed

_NO_HEADERS: Final[Mapping[str, str]] = {}
_NO_FACTS: Final[Mapping[str, Fact]] = {}


class Refusal(Exception):
    """Why a request is not answered as it was meant: raised by the guard or by a route, and told as a problem."""

    def __init__(
        self,
        status: int,
        error: str,
        message: str,
        headers: Mapping[str, str] = _NO_HEADERS,
        facts: Mapping[str, Fact] = _NO_FACTS,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(error=error, message=message, facts=dict(facts))
        self.headers = headers


def unauthorized() -> Refusal:
    """Refuse whoever is not known, in the same words whatever was wrong."""
    message = "no valid token: send the header `Authorization: Bearer wl_...`; `windlass token new` makes one"
    return _not_allowed(401, message, {"WWW-Authenticate": "Bearer"})


def forbidden(message: str) -> Refusal:
    """Refuse what somebody who is known may not do."""
    return _not_allowed(403, message)


def too_many_requests(what: str, wait: float) -> Refusal:
    """Refuse for now; whoever asks is told when to come back."""
    seconds = max(1, ceil(wait))
    message = f"{what}: try again in {seconds} s"
    return Refusal(429, "too_many_requests", message, {"Retry-After": str(seconds)}, {"retryable": True})


def _not_allowed(status: int, message: str, headers: Mapping[str, str] = _NO_HEADERS) -> Refusal:
    problem = problem_of(NotAllowed(message))
    return Refusal(status, problem.error, message, headers, problem.facts)


def refuse_beyond(what: str) -> NoReturn:
    """Refuse a call that is about more than the caller's queues."""
    message = f"this token is limited to some queues, and {what} is beyond them: use another token"
    raise NotAllowed(message)
