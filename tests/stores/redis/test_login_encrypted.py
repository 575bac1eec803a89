"""Over TLS: who is trusted, and what is said of a server that is not."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import windlass
from tests.redis.binaries import REDIS_7
from tests.redis.ports import free_port
from tests.redis.private import PrivateRedis
from tests.servers.certificates import OPENSSL, Certificate, make_certificate, make_root
from windlass import StoreUnavailable

pytestmark = pytest.mark.skipif(
    REDIS_7 is None or OPENSSL is None, reason="the Valkey of the wheel has no TLS; Debian's Redis is not installed"
)
QUICK: Final = 5.0


class Encrypted(NamedTuple):
    """Where a server is that speaks TLS, who has signed its certificate, and somebody who has not."""

    port: int
    root: Certificate
    stranger: Certificate
    client: Certificate
    server: PrivateRedis

    def url(self, *options: str, host: str = "localhost") -> str:
        return f"rediss://{host}:{self.port}/0?{'&'.join(options)}"


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    folder = tmp_path_factory.mktemp("certificates")
    root, stranger = make_root(folder, "root"), make_root(folder, "stranger")
    own = make_certificate(folder, "localhost", root)
    port = free_port()
    conf = {
        "tls-port": str(port),
        "tls-cert-file": str(own.file),
        "tls-key-file": str(own.key),
        "tls-ca-cert-file": str(root.file),
        "tls-auth-clients": "optional",
    }
    with PrivateRedis(program=REDIS_7, conf=conf) as server:
        yield Encrypted(port, root, stranger, make_certificate(folder, "ann", root), server)


async def live(url: str) -> None:
    async with windlass.connect(url) as client:
        await client.enqueue("q", b"")
        assert await client.claim("q", wait=5) is not None


async def test_a_server_whose_certificate_is_signed_by_whom_the_url_names_is_trusted(encrypted: Encrypted) -> None:
    await live(encrypted.url(f"tls_ca={encrypted.root.file}"))


async def test_a_client_may_have_a_certificate_too(encrypted: Encrypted) -> None:
    encrypted.server.ask("CONFIG", "SET", "tls-auth-clients", "yes")
    ca = f"tls_ca={encrypted.root.file}"
    try:
        await live(encrypted.url(ca, f"tls_cert={encrypted.client.file}", f"tls_key={encrypted.client.key}"))
        with pytest.raises(StoreUnavailable):
            await live(encrypted.url(ca, "timeout=0.5"))
    finally:
        encrypted.server.ask("CONFIG", "SET", "tls-auth-clients", "optional")


@pytest.mark.parametrize(
    "options, host, said",
    [
        ("", "localhost", r"was not trusted: .*check \?tls_ca="),
        ("tls_ca={stranger}", "localhost", r"was not trusted: .*check \?tls_ca="),
        ("tls_ca={root}", "127.0.0.1", "was not trusted: .*the name in its certificate"),
    ],
)
async def test_a_server_that_is_not_trusted_is_told_of_at_once(
    encrypted: Encrypted, options: str, host: str, said: str
) -> None:
    given = options.format(root=encrypted.root.file, stranger=encrypted.stranger.file)
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match=said) as told:
        await live(encrypted.url(*([given] if given else []), host=host))

    assert not told.value.retryable
    assert time.monotonic() - began < QUICK


async def test_files_that_are_not_there_are_told_of_at_once(encrypted: Encrypted, tmp_path: Path) -> None:
    shutil.copy(encrypted.root.key, tmp_path / "no certificate")

    for option in (f"tls_ca={tmp_path / 'none'}", f"tls_ca={tmp_path / 'no certificate'}"):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"\?tls_ca=") as told:
            await live(encrypted.url(option))
        assert not told.value.retryable
        assert time.monotonic() - began < QUICK


async def test_a_server_without_tls_is_told_of(encrypted: Encrypted) -> None:
    plain = f"rediss://localhost:{encrypted.server.port}/0?timeout=0.5&tls_ca={encrypted.root.file}"

    with pytest.raises(StoreUnavailable, match="did not answer in time"):
        await live(plain)
