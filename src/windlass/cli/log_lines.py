"""What the library logs while a command runs, as lines on stderr; the worker has a log of its own."""

import logging
import sys
from typing import Final

import click

from windlass.core.escaped import escaped

logger = logging.getLogger("windlass")

OF_SERVERS: Final = "windlass.durability"
"""What a store keeps is said at the start of whoever works on it, and by `windlass doctor`: not at each command."""


class LogLines(logging.Handler):
    """Writes `warning: ...`, each line once."""

    def __init__(self) -> None:
        """Begin with nothing told."""
        super().__init__(logging.WARNING)
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, without anything that a terminal would obey."""
        if record.name == OF_SERVERS:
            return
        line = f"{record.levelname.lower()}: {escaped(record.getMessage())}"
        if line not in self._told:
            self._told.add(line)
            click.echo(line, file=sys.stderr)


def tell_warnings() -> None:
    """Let the warnings of this command be seen, unless the program around it has its own way."""
    leave_to_log()
    if not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(LogLines())


def leave_to_log() -> None:
    """Tell nothing more: this command has a log of its own, which says the same."""
    for each in [each for each in logger.handlers if isinstance(each, LogLines)]:
        logger.removeHandler(each)
