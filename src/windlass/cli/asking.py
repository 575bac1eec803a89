"""A question before something is changed."""

import sys

import click

from windlass.cli.output import note
from windlass.exit_codes import ExitCode


def ask(question: str, *, yes: bool, first: str = "") -> None:
    """Go on when somebody agrees, on stderr, or has done so by --yes; else the command ends, with nothing done.

    Where nobody can answer it is refused; `first` is what could be looked at before.
    """
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        message = f"{question} nobody is here to answer: give --yes" + (
            f", or look first with {first}" if first else ""
        )
        raise click.UsageError(message)
    try:
        sure = click.confirm(question, err=True)
    except click.Abort:
        note("")
        note("nothing was done")
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
    if not sure:
        note("nothing was done")
        raise click.exceptions.Exit(ExitCode.FAILED)
