"""How child processes write their log, where whoever started the server has a way of its own."""

from typing import Protocol


class LogSetup(Protocol):
    """Sets up the log of a process; it is sent to child processes, and so can be pickled."""

    def begin(self) -> None:
        """Show what is said before the app is loaded."""
        ...

    def take_root(self) -> None:
        """Show what everybody says, unless the app has set up the root logger."""
        ...


class Children:
    """What holds for the child processes that are started from here on."""

    log_setup: LogSetup | None = None
    """None leaves their log to the app, as that of a program that runs a server is."""
