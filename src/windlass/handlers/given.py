"""A mark for parameters that no caller gives."""

from typing import Any, Final


class Given:
    """The default of a parameter that the server fills in."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Read well in signatures."""
        return "given()"


GIVEN: Final = Given()


def given() -> Any:  # noqa: ANN401 - it stands in for a value of any type
    """Return a default for a parameter that a lifespan provides, so that callers may leave it out.

    `async def send(user_id: int, pool: Pool = given()) -> None` is enqueued as `send.enqueue(42)`, also in the eyes of
    a type checker; the server hands over the pool that a lifespan opened.
    """
    return GIVEN
