"""A master, its replica, and sentinels who let the replica take over, again and again."""

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.redis.asking import wait_until
from tests.redis.private import PrivateRedis
from tests.redis.process import Process

_QUICK: Final[Mapping[str, int]] = {
    # How often a lost connection is tried again: once at least before a server is missing, see `down_after`. And no
    # replica is taken that was silent for five times as long; when it may be needed it is asked each second.
    "ping-period": 400,
    "info-period": 300,
    "ask-period": 100,
    "election-timeout": 1_000,
    # sentinels that stood still do nothing for half a minute, unless told otherwise
    "tilt-trigger": 60_000,
}
"""How often sentinels do what, in milliseconds."""
# Sentinels find each other by what they publish. A server whose role is not the one that they know of is told to take
# that after four times as long: too soon for a replica that is just taking over, where it is short.
_OFTEN: Final = 100
_SELDOM: Final = 2_000


class Sentinels:
    """Servers and `count` sentinels, of whom `quorum` must agree; `replica` is `master` when it has taken over.

    As a context manager all are started, and in the end killed and removed. Both servers have `conf`; where that asks
    for a password, the sentinels know it. A master is missing when it was silent for `down_after` milliseconds.
    """

    def __init__(
        self,
        *,
        count: int = 3,
        quorum: int | None = None,
        name: str = "jobs",
        down_after: int = 1_000,
        program: Path | None = None,
        conf: Mapping[str, str] | None = None,
    ) -> None:
        settings = dict(conf or {})
        password = settings.get("requirepass")
        if password is not None:
            settings["masterauth"] = password
        self.name: Final = name
        self.master = PrivateRedis(program=program, conf=settings)
        self.replica = PrivateRedis(program=program, conf=settings, master=self.master)
        lines = [
            f"sentinel monitor {name} 127.0.0.1 {self.master.port} {quorum or count // 2 + 1}",
            f"sentinel down-after-milliseconds {name} {down_after}",
            f"sentinel failover-timeout {name} 2000",
            *([f"sentinel auth-pass {name} {json.dumps(password)}"] if password is not None else []),
        ]
        self.sentinels: Final = [
            Process(program=program, conf={}, lines=lines, flags=["--sentinel"]) for _ in range(count)
        ]
        self._all: Final[list[Process]] = [self.master, self.replica, *self.sentinels]

    @property
    def url(self) -> str:
        """Where the sentinels are, and whom to ask them for, without a prefix."""
        user, at, _ = self.master.url.removeprefix("redis://").rpartition("@")
        places = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{user}{at}{places}/{self.name}/0"

    def failover(self) -> None:
        """Let the replica take over from a master that is well.

        That one goes on as a master too, until `join` or for some eight seconds: what it is asked to write is lost.
        """

        def begins() -> bool:
            # refused as long as the sentinel knows of no replica that it could take
            return bool(self.sentinels[0].ask("SENTINEL", "FAILOVER", self.name))

        wait_until(begins, "the sentinels take nobody")

    def kill_master(self) -> None:
        """Kill the master; the sentinels notice by themselves."""
        self.master.kill()

    def wait_until_promoted(self) -> float:
        """Return when the replica is a master and all sentinels say so: since when, by the monotonic clock.

        It is `master` from now on, and the other one `replica`.
        """
        wait_until(lambda: _role(self.replica) == "master", "the replica is not promoted")
        promoted_at = time.monotonic()
        wait_until(lambda: all(self._master_of(each) == self.replica.port for each in self.sentinels), "nobody tells")
        self.master, self.replica = self.replica, self.master
        return promoted_at

    def join(self) -> None:
        """Return when the old master, which is started where it was killed, follows the new one."""
        if not self.replica.runs:
            self.replica.start()
        self._publish_every(_OFTEN)
        self._wait_until_replicated()
        self._publish_every(_SELDOM)

    def __enter__(self) -> Self:
        with ExitStack() as undoing:
            undoing.callback(self.close)
            for process in self._all:
                process.start()
            for sentinel in self.sentinels:
                sentinel.ask("SENTINEL", "DEBUG", *(word for option in _QUICK.items() for word in option))
            self._publish_every(_OFTEN)
            self._wait_until_replicated()
            self._publish_every(_SELDOM)
            undoing.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all that run, and remove their data."""
        for process in self._all:
            process.close()

    def _publish_every(self, milliseconds: int) -> None:
        for sentinel in self.sentinels:
            sentinel.ask("SENTINEL", "DEBUG", "publish-period", milliseconds)

    def _wait_until_replicated(self) -> None:
        def follows() -> bool:
            # a master tells other things of its role
            told: list[str | int] = self.replica.ask("ROLE")
            return told[:4] == ["slave", "127.0.0.1", self.master.port, "connected"]

        wait_until(follows, "the replica does not follow its master")
        wait_until(lambda: all(map(self._sees_all, self.sentinels)), "the sentinels do not find each other")

    def _sees_all(self, sentinel: Process) -> bool:
        master = _fields(sentinel.ask("SENTINEL", "MASTER", self.name))
        replicas = [_fields(each) for each in sentinel.ask("SENTINEL", "REPLICAS", self.name)]
        others = int(master["num-other-sentinels"]) + 1
        seen = [(each["flags"], each["master-link-status"]) for each in replicas]
        return master["flags"] == "master" and seen == [("slave", "ok")] and others == len(self.sentinels)

    def _master_of(self, sentinel: Process) -> int:
        return int(sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.name)[1])


def _role(server: PrivateRedis) -> str:
    role: str = server.ask("ROLE")[0]
    return role


def _fields(answer: list[str]) -> dict[str, str]:
    return dict(zip(answer[::2], answer[1::2], strict=True))
