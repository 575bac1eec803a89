"""What is beyond the queues that a token is limited to."""

from typing import NoReturn

from windlass.core.errors import NotAllowed


def refuse_beyond(what: str) -> NoReturn:
    """Refuse a call that is about more than the caller's queues."""
    message = f"this token is limited to some queues, and {what} is beyond them: use another token"
    raise NotAllowed(message)
