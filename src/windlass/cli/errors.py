"""Errors of the command line alone."""

import difflib
from collections.abc import Collection, Generator
from contextlib import contextmanager

import click

from windlass.core.errors import MissingExtra


class NameNotFound(click.ClickException):
    """A queue or a token that is not there; the command ends as for an unknown job or schedule."""


def no_such_queue(name: str, known: Collection[str]) -> str:
    """Return the message for a queue that is not there."""
    near = difflib.get_close_matches(name, known, n=1)
    advice = f"did you mean {near[0]!r}?" if near else "`windlass queues` lists those that are here"
    return f"no queue {name!r} here: {advice}"


@contextmanager
def needs_extra(command: str, extra: str) -> Generator[None]:
    """Import in the block what an extra brings; where it is not installed the error names the extra.

    A command does so when it runs, so that its help is shown without the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "windlass":
            raise
        raise MissingExtra(command, extra) from error
