"""Timeout of the scheduler's calls of the store."""

from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from windlass.core.clock import Clock
from windlass.core.errors import StoreUnavailable
from windlass.kit.timeouts import call_with_timeout

T = TypeVar("T")

STORE_TIMEOUT: Final = 10.0
"""Seconds after which the store's answer is no longer waited for."""


async def call_store(call: Coroutine[Any, Any, T], what: str, clock: Clock) -> T:
    """Return what `call` returns; raises `StoreUnavailable` when it hangs. Whether it was done is not known then."""
    try:
        return await call_with_timeout(call, STORE_TIMEOUT, clock)
    except TimeoutError:
        message = f"the store has not answered within {STORE_TIMEOUT:.0f} s: {what}"
        raise StoreUnavailable(message, retryable=True) from None
