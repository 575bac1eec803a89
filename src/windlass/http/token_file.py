"""The file of tokens: who may read it, when it is read again, and how it is changed."""

import fcntl
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from windlass.core.clock import Clock
from windlass.core.errors import InvalidValue
from windlass.core.names import shortened
from windlass.http.token_table import check_together, read_tokens, written_tokens
from windlass.http.tokens import KnownToken, find_token
from windlass.system import SystemClock

logger = logging.getLogger("windlass.http")

LARGEST: Final = 1024 * 1024
LOOK_EVERY: Final = 1.0

_OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class _Mark(NamedTuple):
    """What tells one version of a file from the next."""

    device: int
    number: int
    mode: int
    size: int
    written_at: int
    changed_at: int


class TokenFile:
    """The tokens of a file, which is looked at again once a second at most.

    A file that cannot be used is refused when this is made. Later a new version that cannot be used, or a file that is
    gone, is logged, and the tokens of the version before go on to hold.
    """

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._looked_at = self._clock.monotonic()
        self._mark = _mark_of(path)
        self._tokens = read_file(path)

    def __len__(self) -> int:
        return len(self._current())

    def find(self, secret: str) -> KnownToken | None:
        """Return what is known of a token that somebody presents."""
        return find_token(secret, self._current())

    def still_known(self, sha256: str) -> KnownToken | None:
        """Return what the file says by now of the token with this hash."""
        return next((each for each in self._current() if each.sha256 == sha256), None)

    def _current(self) -> Sequence[KnownToken]:
        now = self._clock.monotonic()
        if now - self._looked_at >= LOOK_EVERY:
            self._looked_at = now
            self._look()
        return self._tokens

    def _look(self) -> None:
        mark = _mark_of(self._path)
        if mark == self._mark:
            return
        # taken before the file is read: what is written meanwhile is seen by the next look
        self._mark = mark
        try:
            self._tokens = read_file(self._path)
        except InvalidValue as error:
            logger.error("%s; the tokens that were read before go on to hold", error)  # noqa: TRY400 - nothing of ours
        else:
            logger.info("the file of tokens %s was read again: %d tokens", self._path, len(self._tokens))


def read_file(path: Path) -> tuple[KnownToken, ...]:
    """Return the tokens of a file; `InvalidValue` says why it cannot be used, and what to do."""
    try:
        return read_tokens(_text_of(path))
    except FileNotFoundError:
        message = f"there is no file of tokens {_shown(path)}: make one by `windlass token new --name NAME --role ROLE`"
        raise InvalidValue(message) from None
    except InvalidValue as error:
        message = f"the file of tokens {_shown(path)}: {error}"
        raise InvalidValue(message) from None
    except (OSError, ValueError) as error:
        message = f"the file of tokens {_shown(path)} cannot be read: {_reason(error)}"
        raise InvalidValue(message) from error


def change_file(path: Path, change: Callable[[Sequence[KnownToken]], Sequence[KnownToken]]) -> None:
    """Write what `change` makes of a file's tokens, as a whole or not at all; one that is not there is made.

    Of several at once each sees what the one before wrote. The file belongs to whom it belonged, and nobody else may
    read it. A symbolic link is refused.
    """
    if path.is_symlink():
        message = f"the file of tokens {_shown(path)} is a symbolic link: name the file that it leads to"
        raise InvalidValue(message)
    try:
        with _turn(path.parent) as folder:
            tokens = change(read_file(path) if os.path.lexists(path) else ())
            check_together(tokens)
            _replace(path, written_tokens(tokens).encode())
            os.fsync(folder)
    except OSError as error:
        message = f"the file of tokens {_shown(path)} cannot be written: {_reason(error)}"
        raise InvalidValue(message) from error


def _text_of(path: Path) -> str:
    # not to wait where the file is a pipe that nobody writes to
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_owner(os.fstat(opened))
        with open(opened, "rb", closefd=False) as file:
            content = file.read(LARGEST + 1)
    finally:
        os.close(opened)
    if len(content) > LARGEST:
        message = f"it is larger than {LARGEST:,} bytes: remove tokens that nobody uses"
        raise InvalidValue(message)
    return content.decode()


def _check_owner(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        message = "it is no ordinary file: name one"
        raise InvalidValue(message)
    if found.st_mode & _OF_OTHERS:
        message = f"others than its owner may use it (mode {stat.S_IMODE(found.st_mode):04o}): run chmod 0600 on it"
        raise InvalidValue(message)
    # the administrator may run what belongs to others
    if os.geteuid() not in (0, found.st_uid) and found.st_uid != 0:
        message = "it belongs to another user: run chown on it"
        raise InvalidValue(message)


def _mark_of(path: Path) -> _Mark | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return _Mark(found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@contextmanager
def _turn(folder: Path) -> Generator[int]:
    """Have the folder to oneself among those who change a file of tokens in it."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield opened
    finally:
        os.close(opened)


def _replace(path: Path, content: bytes) -> None:
    # made under a name that nobody can guess, never opened through a link, and with mode 0600 from the start
    opened, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(opened, "wb") as file:  # noqa: PTH123 - a descriptor
            _keep_owner(path, opened)
            file.write(content)
            file.flush()
            os.fsync(opened)
        Path(made).replace(path)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise


def _keep_owner(path: Path, opened: int) -> None:
    if os.geteuid() == 0 and path.exists():
        before = path.stat()
        os.fchown(opened, before.st_uid, before.st_gid)


def _shown(path: Path) -> str:
    return shortened(str(path), 200)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
