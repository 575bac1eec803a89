"""A store that looks as if another process served it."""

from dataclasses import replace
from typing import Any

from windlass.core.store import Store


class ServedStore:
    """Gives what the store behind it has, says that it is served, and keeps the names of the calls."""

    def __init__(self, behind: Store) -> None:
        self.behind = behind
        self.features = replace(behind.features, served=True)
        self.calls: list[str] = []

    def sibling(self) -> "ServedStore":
        return self

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        self.calls.append(name)
        return getattr(self.behind, name)
