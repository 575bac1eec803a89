"""Names that are known for a while."""


class Remembered:
    """The last names that were added; the oldest are forgotten."""

    def __init__(self, most: int) -> None:
        """Know at most so many."""
        self._most = most
        self._names: dict[str, None] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Know a name from now on."""
        self._names[name] = None
        if len(self._names) > self._most:
            del self._names[next(iter(self._names))]
