"""Claims that were repeated: whoever makes the last of them knows of the jobs, whatever became of those before."""

from typing import Final

MOST_KEPT: Final = 10_000


class Repeats:
    """The last call of each claim that was told again what it had been given, however often the database is opened."""

    def __init__(self) -> None:
        """Begin with none."""
        self._last: dict[str, object] = {}

    def add(self, request_id: str | None, call: object) -> None:
        """Know a call as the last one of its request, in place of the oldest."""
        if request_id is not None:
            # to the end: it is the youngest from now on
            self._last.pop(request_id, None)
            self._last[request_id] = call
            if len(self._last) > MOST_KEPT:
                del self._last[next(iter(self._last))]

    def has_later(self, request_id: str | None, call: object) -> bool:
        """Whether a request was repeated after this call."""
        return request_id is not None and self._last.get(request_id, call) is not call
