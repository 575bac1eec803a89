"""The parameters of a statement, and something to bind to one that is only to be explained."""

import re


def parameter_names(statement: str) -> set[str]:
    """Return the names of the named parameters."""
    return set(re.findall(r":(\w+)", _without_comments(statement)))


def positional_count(statement: str) -> int:
    """Return the number of positional parameters."""
    return _without_comments(statement).count("?")


def some_parameters(statement: str) -> dict[str, str] | list[str]:
    """Return a value for each parameter, by name or by position."""
    if names := parameter_names(statement):
        return dict.fromkeys(names, "[]")
    return ["[]"] * positional_count(statement)


def _without_comments(statement: str) -> str:
    return "\n".join(line for line in statement.splitlines() if not line.strip().startswith("--"))
