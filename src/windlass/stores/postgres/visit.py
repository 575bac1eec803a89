"""Moves in somebody else's transaction, which is afterwards as it was before."""

from asyncio import CancelledError
from contextlib import suppress
from typing import TypeVar

from windlass.stores.postgres.work import Statement, Work

T = TypeVar("T")


def as_a_guest(path: str, work: Work[T]) -> Work[T]:
    """Do `work` with this search path."""
    [(before, _)] = yield Statement("set_here", {"name": "search_path", "value": path})
    return (yield from _then_set("search_path", before, work))


def patiently(patience: str, work: Work[T]) -> Work[T]:
    """Wait for other transactions no longer than `patience` milliseconds, or than the caller's own limit."""
    [(before, _)] = yield Statement("set_patience", {"lock_timeout": patience})
    return (yield from _then_set("lock_timeout", before, work))


def undone_if_refused(work: Work[T]) -> Work[T]:
    """Do `work` under a savepoint, so that an error leaves the transaction as it was."""
    yield Statement("savepoint")
    try:
        answer = yield from work
    except (Exception, CancelledError):
        # if not even that works, the first error still tells more than the second
        with suppress(Exception):
            yield Statement("back_to_savepoint")
            yield Statement("release_savepoint")
        raise
    yield Statement("release_savepoint")
    return answer


def _then_set(name: str, before: str, work: Work[T]) -> Work[T]:
    """Do `work`, then put a setting back to what it was."""
    try:
        answer = yield from work
    except (Exception, CancelledError):
        # refused when Postgres itself has met an error: then the rollback that must follow puts it back
        with suppress(Exception):
            yield Statement("set_here", {"name": name, "value": before})
        raise
    yield Statement("set_here", {"name": name, "value": before})
    return answer
