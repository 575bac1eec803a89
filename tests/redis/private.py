"""A Redis for one test alone, to be stopped, killed and started again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.redis.process import Process
from tests.redis.starting import QUICK

DURABLE: Final[Mapping[str, str]] = {"appendonly": "yes", "appendfsync": "always"}
"""The settings of a Redis that keeps what it has acknowledged, whatever happens."""


class PrivateRedis(Process):
    """A Redis on a port and data of its own; see `Process`.

    `conf` goes over the settings for quick tests; it is read at each start, and what is put into it later holds from
    the next one on. `users` are rules by name, as in `ACL SETUSER`. `program` is another Redis than that of the run. It
    follows `master` until it is told otherwise, and comes back as what it was when it was last told.
    """

    def __init__(
        self,
        *,
        program: Path | None = None,
        conf: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        master: "PrivateRedis | None" = None,
    ) -> None:
        lines = [f"user {name} {rules}" for name, rules in (users or {}).items()]
        if master is not None:
            lines.append(f"replicaof 127.0.0.1 {master.port}")
        super().__init__(program=program, conf={**QUICK, **(conf or {})}, lines=lines)

    @property
    def url(self) -> str:
        """Where it is, without a prefix; with the password that everybody needs, where `conf` asks for one."""
        password = self.conf.get("requirepass", "")
        return self.url_for("", password) if password else super().url

    def url_for(self, user: str, password: str) -> str:
        """Return the URL for one of its users."""
        return f"redis://{quote(user, safe='')}:{quote(password, safe='')}@127.0.0.1:{self.port}/0"
