"""What somebody may do: each operation names the roles that may call it."""

from enum import StrEnum


class Role(StrEnum):
    """A set of operations; whoever has several may call those of each."""

    VIEW = "view"
    """Look at jobs, queues, schedules and servers."""
    PRODUCE = "produce"
    """Put jobs in line, and wait for what becomes of them."""
    WORK = "work"
    """Claim jobs and settle them, as a server does."""
    OPERATE = "operate"
    """Steer: retry, cancel and delete jobs, pause queues, change schedules."""
    ADMIN = "admin"
    """Everything."""
