"""What a run leaves: nothing where its promise held, and all that there is to look at where it did not."""

import errno
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.servers.private import leaving_folders


class Remains:
    """The folder of a run, and those of the servers that were started for it."""

    def __init__(self, folder: Path) -> None:
        """Take what lies in the folder for its own."""
        self.held = False
        """Whether the promise held, so that nobody wants to look at anything."""
        self._folder: Final = folder
        self._elsewhere: list[Path] = []

    def __str__(self) -> str:
        return ", ".join(map(str, [self._folder, *self._elsewhere]))

    @contextmanager
    def of_servers(self) -> Generator[None]:
        """Put what servers leave meanwhile into the folder, or remove it if the promise `held`."""
        with leaving_folders() as left:
            try:
                yield
            finally:
                for server in left:
                    self._take(server)

    def _take(self, server: Path) -> None:
        if self.held:
            shutil.rmtree(server, ignore_errors=True)
            return
        try:
            server.rename(self._folder / server.name)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # it may be large, and the folder is on another disk
            self._elsewhere.append(server)
