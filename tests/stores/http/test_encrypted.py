"""Over TLS: who is trusted, and what is said of a server that is not."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.servers.certificates import OPENSSL, Certificate, make_certificate, make_root
from tests.stores.http.running import told
from tests.stores.http.scripted import Scripted
from windlass.api.operations import GLANCE
from windlass.core.errors import StoreUnavailable
from windlass.stores.http.address import read_address
from windlass.stores.http.runner import Runner

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
QUICK: Final = 5.0


class Encrypted(NamedTuple):
    """Where a server is that speaks TLS, who has signed its certificate, and somebody who has not."""

    server: Scripted
    root: Certificate
    stranger: Certificate
    client: Certificate

    async def call(self, host: str = "localhost", **given: str) -> bytes:
        runner = Runner(read_address("https", f"{host}:{self.server.port}", "", given), told)
        try:
            return await runner.call(GLANCE, b"{}")
        finally:
            await runner.close()


class Files(NamedTuple):
    """What was signed by whom."""

    root: Certificate
    stranger: Certificate
    own: Certificate
    client: Certificate


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("certificates")
    root, stranger = make_root(folder, "root"), make_root(folder, "stranger")
    return Files(root, stranger, make_certificate(folder, "localhost", root), make_certificate(folder, "ann", root))


@pytest.fixture
async def encrypted(files: Files) -> AsyncIterator[Encrypted]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files.root.file)
    context.load_cert_chain(files.own.file, files.own.key)
    context.verify_mode = ssl.CERT_OPTIONAL
    async with Scripted(tls=context) as server:
        yield Encrypted(server, files.root, files.stranger, files.client)


async def test_a_server_whose_certificate_is_signed_by_whom_the_url_names_is_trusted(encrypted: Encrypted) -> None:
    assert await encrypted.call(tls_ca=str(encrypted.root.file)) == b"{}"


async def test_a_client_may_have_a_certificate_too(encrypted: Encrypted) -> None:
    ca = str(encrypted.root.file)
    encrypted.server.demand_certificates()

    answer = await encrypted.call(tls_ca=ca, tls_cert=str(encrypted.client.file), tls_key=str(encrypted.client.key))

    assert answer == b"{}"
    with pytest.raises(StoreUnavailable):
        await encrypted.call(tls_ca=ca, timeout="0.5")


@pytest.mark.parametrize(
    "signer, host, said",
    [
        (None, "localhost", r"was not trusted: .*check \?tls_ca="),
        ("stranger", "localhost", r"was not trusted: .*check \?tls_ca="),
        ("root", "127.0.0.1", "was not trusted: .*the name in its certificate"),
    ],
)
async def test_a_server_that_is_not_trusted_is_told_of_at_once(
    encrypted: Encrypted, signer: str | None, host: str, said: str
) -> None:
    given = {} if signer is None else {"tls_ca": str(getattr(encrypted, signer).file)}
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match=said) as told:
        await encrypted.call(host, **given)

    assert not told.value.retryable
    assert time.monotonic() - began < QUICK
    assert encrypted.server.requests == []


async def test_files_that_cannot_be_used_are_told_of_at_once(encrypted: Encrypted, tmp_path: Path) -> None:
    began = time.monotonic()

    for file in (tmp_path / "none", encrypted.root.key, tmp_path):
        with pytest.raises(StoreUnavailable, match=r"\?tls_ca=.* cannot be used .*PEM") as told:
            await encrypted.call(tls_ca=str(file))
        assert not told.value.retryable

    assert time.monotonic() - began < QUICK


async def test_a_certificate_that_was_renewed_is_read_again(encrypted: Encrypted, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(encrypted.stranger.file.read_bytes())
    with pytest.raises(StoreUnavailable, match="was not trusted"):
        await encrypted.call(tls_ca=str(file))

    file.write_bytes(encrypted.root.file.read_bytes())

    assert await encrypted.call(tls_ca=str(file)) == b"{}"


async def test_a_server_without_tls_is_told_of_at_once(server: Scripted, files: Files) -> None:
    async def answer_anything(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer_anything, "127.0.0.1", 0) as plain:
        server.port = plain.sockets[0].getsockname()[1]
        whom = Encrypted(server, files.root, files.stranger, files.client)

        with pytest.raises(StoreUnavailable, match="speaks TLS, or is http://") as told:
            await whom.call(tls_ca=str(files.root.file))

    assert not told.value.retryable
