"""Calls that the engine answers at once are taken at once: its binding sends each round the event loop.

A read of what is in memory costs half as much so. The one private function that waits for the engine is replaced where
the binding is the one that this file knows.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Final

from slatedb.uniffi._slatedb_uniffi import slatedb as _binding

_NAMES: Final = (
    "_UNIFFI_RUST_FUTURE_CONTINUATION_CALLBACK",
    "_UNIFFI_RUST_FUTURE_POLL_READY",
    "_UniffiContinuationHandleMap",
    "_uniffi_rust_call_async",
    "_uniffi_rust_call_with_error",
    "_uniffi_set_future_result",
)
_PARAMETERS: Final = ("rust_future", "ffi_poll", "ffi_complete", "ffi_free", "lift_func", "error_ffi_converter")
# What is private has no types that a checker could read.
_b: Final[Any] = _binding


class _Turn:
    """One look at a call: what came of it, and whom to wake. Either side writes before it reads the other's part."""

    __slots__ = ("code", "waiter")

    def __init__(self) -> None:
        self.code: int | None = None
        self.waiter: asyncio.Future[None] | None = None


def speed_up() -> bool:
    """Make calls of the engine fast for the whole process; return whether they are."""
    if getattr(_b, "_uniffi_rust_call_async", None) is _call:
        return True
    if not all(hasattr(_b, name) for name in _NAMES) or not _takes_what_is_known(_b._uniffi_rust_call_async):
        return False
    _b._uniffi_rust_call_async = _call
    return True


def _takes_what_is_known(call: Callable[..., object]) -> bool:
    code = call.__code__
    return code.co_varnames[: code.co_argcount] == _PARAMETERS


@cache
def _note() -> Any:
    """Return `_noted` as the engine can call it."""
    return _b._UNIFFI_RUST_FUTURE_CONTINUATION_CALLBACK(_noted)


def _noted(handle: int, code: int) -> None:
    """Take what came of a turn; any thread of the engine may call it, also while the turn begins."""
    turn: _Turn = _b._UniffiContinuationHandleMap.remove(handle)
    turn.code = code
    waiter = turn.waiter
    if waiter is not None:
        # a loop that was closed waits for nothing
        with suppress(RuntimeError):
            waiter.get_loop().call_soon_threadsafe(_wake, waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def _call(  # noqa: PLR0917 - as the binding calls it
    rust_future: int,
    ffi_poll: Callable[..., None],
    ffi_complete: Callable[..., object],
    ffi_free: Callable[[int], None],
    lift_func: Callable[[Any], Any],
    error_ffi_converter: object,
) -> Any:
    try:
        while True:
            turn = _Turn()
            ffi_poll(rust_future, _note(), _b._UniffiContinuationHandleMap.insert(turn))
            if turn.code is None:
                turn.waiter = waiter = asyncio.get_running_loop().create_future()
                if turn.code is None:
                    await waiter
            if turn.code == _b._UNIFFI_RUST_FUTURE_POLL_READY:
                break
        return lift_func(_b._uniffi_rust_call_with_error(error_ffi_converter, ffi_complete, rust_future))
    finally:
        ffi_free(rust_future)
