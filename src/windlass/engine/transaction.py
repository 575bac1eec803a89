"""A claim settled in the transaction that wrote its effects."""

from types import TracebackType
from typing import Any, Protocol


class ClaimTransaction(Protocol):
    """Checks the claim at its begin and acks it at its end, in one transaction; `with` is for threads."""

    async def __aenter__(self) -> Any:  # noqa: ANN401 - the connection of whichever driver
        """Begin, check the claim and give the connection; raises `ClaimLost`."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Ack and commit, or roll back when the block raised."""
        ...

    def __enter__(self) -> Any:  # noqa: ANN401 - the connection of whichever driver
        """As `async with`, for a handler that runs in a thread."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """As `async with`, for a handler that runs in a thread."""
        ...
