"""Crashes, told by a test: of a whole server, or of one attempt at a named point."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias, get_args

from windlass.core.errors import InvalidValue
from windlass.core.failpoint import arm, disarm
from windlass.engine import observed
from windlass.engine.observed import Abandoned
from windlass.engine.server import Server
from windlass.testing.failpoints import Fault

Point: TypeAlias = Literal["after_claim", "before_handler", "before_settle", "after_settle"]

_POINTS: Final[dict[str, str]] = {
    "after_claim": observed.AFTER_CLAIM,
    "before_handler": observed.BEFORE_HANDLER,
    "before_settle": observed.BEFORE_SETTLE,
    "after_settle": observed.AFTER_SETTLE,
}


async def crash(server: Server) -> None:
    """Let a server end as by `kill -9`: nothing is settled, nothing given back, and its record stays.

    Its claims hold until their leases run out; then a rescue gives the jobs back, and each has cost an attempt. An
    async handler is cancelled where it waits, a child process killed; a thread cannot be, and goes on to its end, of
    which nothing is written.
    """
    await server.crash()


@contextmanager
def crash_at(point: Point, *, times: int = 1) -> Generator[Fault, None, None]:
    """Abandon the next attempt when it reaches `point`, as if the process that had claimed its job were gone.

    | point | what was done by then |
    |---|---|
    | `after_claim` | the job is claimed, nothing of it was run |
    | `before_handler` | the middlewares have begun, the handler has not |
    | `before_settle` | the handler has ended, and nothing of that is written |
    | `after_settle` | the end is written, the hooks of the app are not called |

    `times` more than once abandons as many attempts. It counts for jobs that `TestApp` runs, in place or by its
    servers, and in eager mode. A block in which no attempt came to the point fails: it would have proved nothing.
    """
    if point not in _POINTS:
        message = f"an attempt can crash at {', '.join(get_args(Point))}, not at {point!r}"
        raise InvalidValue(message)
    fault = Fault(_POINTS[point], _abandon, lambda reached: reached <= times)
    arm(fault.point, fault)
    try:
        yield fault
    finally:
        disarm(fault.point)
    if fault.fired < times:
        message = f"{fault.fired} of {times} attempts crashed at {point!r}: no other one came there in this block"
        raise AssertionError(message)


def _abandon() -> None:
    raise Abandoned
