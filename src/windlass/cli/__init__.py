"""The command line: one file for each command, loaded when it is called. Nothing else knows click or rich."""

from windlass.cli.program import main

__all__ = ["main"]
