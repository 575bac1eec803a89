"""One connection over TLS: it is let go of in time, and its files are read when they have changed."""

import asyncio
import os
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.servers.certificates import OPENSSL, Certificate, make_certificate, make_root
from windlass import StoreUnavailable
from windlass.connect import open_store
from windlass.kit.connections import Connections
from windlass.stores.redis import line as module
from windlass.stores.redis.faults import translate
from windlass.stores.redis.line import Line, open_line
from windlass.stores.redis.options import Options, Place
from windlass.stores.redis.wire import Wire, open_wire

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
PATIENCE: Final = 10.0
SILENT: Final = 4


class Authority:
    """Who signs, and a server's certificate."""

    def __init__(self, folder: Path) -> None:
        self.root = make_root(folder, "root")
        self.own: Certificate = make_certificate(folder, "localhost", self.root)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@contextmanager
def a_black_hole(authority: Authority) -> Generator[int]:
    """Give the port of a server that lets clients in, and then neither reads nor says anything."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.own.file, authority.own.key)
    over = threading.Event()

    def let_in(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as line:
            line.recv(1000)
            line.sendall(b"+OK\r\n")
            over.wait(PATIENCE * 3)

    def serve() -> None:
        while not over.is_set():
            try:
                client, _ = listening.accept()
            except TimeoutError:
                continue
            threads.append(threading.Thread(target=let_in, args=(client,)))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        threads = [threading.Thread(target=serve)]
        threads[0].start()
        yield listening.getsockname()[1]
        over.set()
        for thread in threads:
            thread.join()


@pytest.fixture
def hole(authority: Authority) -> Iterator[Options]:
    with a_black_hole(authority) as port:
        yield Options("single", (Place("localhost", port),), tls=True, tls_ca=str(authority.root.file))


async def test_a_server_that_does_not_take_leave_is_cut_off(hole: Options) -> None:
    line = await open_line(hole, hole.places[0])
    began = time.monotonic()

    await line.close()

    assert time.monotonic() - began < module.LEAVE_WITHIN + PATIENCE / 2
    assert not line.is_open


async def test_many_connections_take_leave_together(hole: Options) -> None:
    async def opens(_: float) -> Wire:
        return await open_wire(hole, hole.places[0])

    connections = Connections(
        opens, most=SILENT, where="here", is_lost=lambda _: True, translate=translate, patient=False
    )
    deadline = asyncio.get_running_loop().time() + PATIENCE
    for wire in [await connections.take(deadline) for _ in range(SILENT)]:
        connections.give(wire)
    began = time.monotonic()

    await connections.close()

    assert time.monotonic() - began < SILENT * module.LEAVE_WITHIN


async def test_the_files_are_read_once_and_again_when_one_was_replaced(
    hole: Options, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ssl.SSLContext] = []
    make = ssl.create_default_context

    def counted() -> ssl.SSLContext:
        made.append(make())
        return made[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    file = tmp_path / "root.crt"
    shutil.copy(authority.root.file, file)
    options = Options("single", hole.places, tls=True, tls_ca=str(file))

    async def connect() -> int:
        line: Line = await open_line(options, options.places[0])
        line.cut()
        return len(made)

    assert [await connect(), await connect()] == [1, 1]
    os.utime(file, (0, 0))
    assert await connect() == 2


@pytest.mark.parametrize("option", ["tls_ca={file}/below-a-file", "tls_ca={missing}", "tls_ca={unreadable}"])
async def test_files_that_cannot_be_read_are_told_of_at_once(authority: Authority, tmp_path: Path, option: str) -> None:
    unreadable = tmp_path / "unreadable"
    shutil.copy(authority.root.file, unreadable)
    unreadable.chmod(0)
    if "unreadable" in option and os.access(unreadable, os.R_OK):
        pytest.skip("this user may read everything")
    given = option.format(file=authority.root.file, missing=tmp_path / "missing", unreadable=unreadable)

    with pytest.raises(StoreUnavailable, match=r"\?tls_ca=.* this user may read them") as told:
        await open_store(f"rediss://localhost:1/0?{given}").open()

    assert not told.value.retryable
