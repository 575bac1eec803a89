"""Servers for one test alone, to be stopped, killed and started again."""

import shutil
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PATIENCE: Final = 60.0
"""Seconds that a server has to end."""
_lists: Final[list[list[Path]]] = []
"""Of those who want to look at what servers leave, the last one has it."""


@contextmanager
def leaving_folders() -> Generator[list[Path]]:
    """Let servers that are closed meanwhile leave their folders; give the list of those that are left."""
    left: list[Path] = []
    _lists.append(left)
    try:
        yield left
    finally:
        _lists.pop()


class Started(ABC):
    """What is started as a context manager, and closed in the end, also when its start fails."""

    @abstractmethod
    def start(self) -> None:
        """Start it, and return when it answers."""

    @abstractmethod
    def close(self) -> None:
        """Stop it, if it runs, and remove its data."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()


class Private(Started):
    """A server in a folder of its own; its guard ends it with the process of the test, however that ends."""

    def __init__(self, prefix: str) -> None:
        self.folder: Final = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """Whether it lives."""
        return self._guard is not None and self._guard.poll() is None

    def close(self) -> None:
        """End it, if it runs, and remove its data, unless they are to be left; see `leaving_folders`."""
        left = _lists[-1] if _lists else None
        if self._guard is not None:
            self._guard.send_signal(signal.SIGTERM if left is None else signal.SIGUSR1)
            self._guard.wait(PATIENCE)
        if left is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        elif self.folder.exists() and self.folder not in left:
            left.append(self.folder)
