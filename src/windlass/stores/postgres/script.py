"""A script of SQL, statement by statement."""

import re
from collections.abc import Iterator
from typing import Final

OUTSIDE: Final = "-- outside a transaction: each statement by itself, written to be repeatable"
"""The first line of a migration with a statement that no transaction takes, such as `create index concurrently`."""

# What may hold a semicolon that ends nothing comes first.
_PIECE: Final = re.compile(
    r"""
      --[^\n]*
    | /\*.*?\*/
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | \$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$
    | (?P<end>;)
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
_NOTHING: Final = re.compile(r"(\s|--[^\n]*\n)*")


def is_outside(script: str) -> bool:
    """Whether a migration runs outside of a transaction."""
    return script.startswith(OUTSIDE)


def statements(script: str) -> Iterator[str]:
    """Split a script into its statements, each with the comments before it."""
    begin = 0
    for piece in _PIECE.finditer(script):
        if piece["end"]:
            yield script[begin : piece.end()].strip()
            begin = piece.end()
    if not _NOTHING.fullmatch(script[begin:] + "\n"):
        yield script[begin:].strip()
