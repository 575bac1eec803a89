"""The parts of starting a Redis: settings for tests, a command, a wait until it answers."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from redis.exceptions import AuthenticationError, NoPermissionError, RedisError

from tests.redis.asking import ask

QUICK: Final[Mapping[str, str]] = {
    # a test's data need not outlive its server
    "save": "",
    "appendonly": "no",
    # replicas are there, and seen by others, as soon as they can be
    "repl-diskless-sync-delay": "0",
    "repl-ping-replica-period": "1",
    # DEBUG SLEEP and its like
    "enable-debug-command": "local",
}
CONF: Final = "redis.conf"
PID: Final = "pid"
_PATIENCE: Final = 60.0


def command(program: Path, folder: Path, port: int, conf: Mapping[str, str], *, flags: Sequence[str] = ()) -> list[str]:
    """Return the command that runs `program` on what is in `folder`; `conf` goes over the file that is there."""
    (folder / CONF).touch()
    places = {"port": str(port), "bind": "127.0.0.1", "dir": str(folder), "pidfile": str(folder / PID)}
    words = [word for name, value in {**places, **conf}.items() for word in (f"--{name}", value)]
    return [str(program), str(folder / CONF), *flags, *words]


def wait_until_it_answers(url: str, log: Path, *, alive: Callable[[], bool]) -> None:
    """Return when it does what it is asked for; raises with the server's log when it has ended or never does."""
    until = time.monotonic() + _PATIENCE
    while True:
        # asked before: what lives now may have ended when the connection is refused
        lives = alive()
        try:
            ask(url, "PING")
        except (AuthenticationError, NoPermissionError):
            # it is there, and does not know who asks
            return
        except (RedisError, OSError) as error:
            if not lives or time.monotonic() > until:
                message = f"the server did not start ({error}); its log: {log.read_text() if log.exists() else 'none'}"
                raise RuntimeError(message) from error
            time.sleep(0.005)
        else:
            return
