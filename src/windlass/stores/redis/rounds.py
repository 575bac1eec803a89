"""Scripts of a round through many queues, of which one whose server is away must not make the others wait."""

from collections.abc import Awaitable
from typing import Protocol

from windlass.stores.redis.requests import Ask
from windlass.stores.redis.runner import Runner


class Runs(Protocol):
    """What runs scripts."""

    @property
    def patience(self) -> float:
        """Seconds after which no call is repeated any more."""
        ...

    def look(self, prefix: str, name: str, ask: Ask) -> Awaitable[bytes]:
        """Run a script that only reads."""
        ...

    def run(self, prefix: str, name: str, ask: Ask, *, doubt: str | None = None) -> Awaitable[bytes]:
        """Run a script that changes something."""
        ...


class Rounds:
    """Runs scripts as `runner` does, but gives up soon where no server answers, and at once for a while after that."""

    def __init__(self, runner: Runner) -> None:
        """Run through `runner`."""
        self._runner = runner
        self.patience = runner.patience

    def look(self, prefix: str, name: str, ask: Ask) -> Awaitable[bytes]:
        """Run a script that only reads."""
        return self._runner.look(prefix, name, ask, in_round=True)

    def run(self, prefix: str, name: str, ask: Ask, *, doubt: str | None = None) -> Awaitable[bytes]:
        """Run a script that changes something."""
        return self._runner.run(prefix, name, ask, doubt=doubt, in_round=True)
