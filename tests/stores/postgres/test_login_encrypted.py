"""Encrypted connections, to a server that takes no others: what is wrong with one is told in clear words."""

import asyncio
from pathlib import Path
from secrets import token_hex
from typing import Final

import pytest
from psycopg import sql

import windlass
from tests.postgres.guarded import CERTIFIED, GuardedCluster
from tests.servers.certificates import make_certificate, make_root
from tests.stores.postgres.conftest import Encrypted
from tests.stores.postgres.test_login import PATIENCE, SECRET, new_user, refusals, shown, works
from windlass import StoreUnavailable

pytestmark = pytest.mark.usefixtures("nothing_from_outside")

SESSIONS: Final = "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where usename = {}"


def url_for(encrypted: Encrypted, options: str, *, host: str = "localhost") -> str:
    url = encrypted.server.new_url(new_user(), SECRET, host=host)
    return f"{url}&timeout=60{options.replace('ROOT', str(encrypted.root.file))}"


async def told_by(url: str) -> StoreUnavailable:
    """Return what a store says that cannot be opened, and will not be by trying again."""
    with pytest.raises(StoreUnavailable) as refused:
        await asyncio.wait_for(windlass.connect(url).open(), PATIENCE)
    assert not refused.value.retryable
    assert SECRET not in shown(refused.value)
    return refused.value


@pytest.mark.parametrize(
    "options",
    [
        "",
        "&sslmode=allow",
        "&sslmode=prefer",
        "&sslmode=require",
        "&sslmode=require&sslrootcert=ROOT",
        "&sslmode=verify-ca&sslrootcert=ROOT",
        "&sslmode=verify-full&sslrootcert=ROOT",
        "&sslmode=verify-full&sslrootcert=ROOT&ssl_min_protocol_version=TLSv1.3",
    ],
)
async def test_every_connection_is_encrypted(encrypted: Encrypted, options: str) -> None:
    user = new_user()
    url = encrypted.server.new_url(user, SECRET) + options.replace("ROOT", str(encrypted.root.file))

    async with windlass.connect(url, poll_interval=600) as client, windlass.connect(url) as other:
        assert await works(client, other)
        sessions = encrypted.server.run(sql.SQL(SESSIONS).format(user))

    # those for the calls of both, and the one by which the first has heard of the job
    assert len(sessions) >= 3
    assert set(sessions) == {(True,)}


async def test_the_variables_of_libpq_say_the_same(encrypted: Encrypted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGSSLROOTCERT", str(encrypted.root.file))

    async with windlass.connect(url_for(encrypted, "")) as client:
        assert await works(client)
    assert "another host" in str(await told_by(url_for(encrypted, "", host="127.0.0.1")))


async def test_a_role_may_prove_itself_by_a_certificate(encrypted: Encrypted) -> None:
    mine = make_certificate(encrypted.folder, CERTIFIED, encrypted.root)
    url = encrypted.server.new_url(CERTIFIED, SECRET).replace(f":{SECRET}@", "@")

    async with windlass.connect(f"{url}&sslmode=require&sslcert={mine.file}&sslkey={mine.key}") as client:
        assert await works(client)
    assert "certificate" in str(await told_by(f"{url}&sslmode=require"))


async def test_who_does_not_encrypt_is_told_what_is_missing(encrypted: Encrypted) -> None:
    told = str(await told_by(url_for(encrypted, "&sslmode=disable")))

    assert "no encryption" in told
    assert "sslmode=require" in told


@pytest.mark.parametrize("options", ["", "&sslmode=verify-full&sslrootcert=ROOT"])
async def test_a_wrong_password_is_told_of_here_too(encrypted: Encrypted, options: str) -> None:
    user = new_user()
    url = encrypted.server.new_url(user, "right").replace(":right@", f":{SECRET}@")

    told = await told_by(f"{url}{options.replace('ROOT', str(encrypted.root.file))}")

    assert f'password authentication failed for user "{user}"' in str(told)
    assert refusals(encrypted.server, user) == 1


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
async def test_a_certificate_that_nobody_trusted_has_signed_is_refused(encrypted: Encrypted, mode: str) -> None:
    other = make_root(encrypted.folder, f"other_{token_hex(4)}")

    told = str(await told_by(url_for(encrypted, f"&sslmode={mode}&sslrootcert={other.file}")))

    assert "is not trusted" in told
    assert "?sslrootcert=" in told


async def test_a_certificate_for_another_host_is_refused_unless_its_name_is_not_looked_at(encrypted: Encrypted) -> None:
    told = str(await told_by(url_for(encrypted, "&sslmode=verify-full&sslrootcert=ROOT", host="127.0.0.1")))
    async with windlass.connect(url_for(encrypted, "&sslmode=verify-ca&sslrootcert=ROOT", host="127.0.0.1")) as client:
        assert await works(client)

    assert "is for another host" in told
    assert "127.0.0.1" in told
    assert "?sslmode=verify-ca" in told


async def test_a_certificate_that_has_run_out_is_refused(encrypted: Encrypted, tmp_path: Path) -> None:
    over = make_certificate(tmp_path, "localhost", encrypted.root, days=-1)
    with GuardedCluster(over) as server:
        told = str(await told_by(url_for(encrypted._replace(server=server), "&sslmode=verify-full&sslrootcert=ROOT")))

    assert "is not valid now (certificate has expired)" in told


async def test_a_server_that_cannot_encrypt_is_told_of(guarded: GuardedCluster) -> None:
    told = str(await told_by(f"{guarded.new_url(new_user(), SECRET)}&sslmode=require&timeout=60"))

    assert "does not encrypt" in told
    assert "sslmode" in told


# it is what is asked for here
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
async def test_two_that_know_no_protocol_in_common_are_told_of(encrypted: Encrypted) -> None:
    url = url_for(encrypted, "&sslmode=require&ssl_max_protocol_version=TLSv1.1").replace("timeout=60", "timeout=0.3")

    with pytest.raises(StoreUnavailable, match=r"no encrypted connection to .*ssl_max_protocol_version"):
        await windlass.connect(url).open()


@pytest.mark.parametrize(
    "options, named",
    [
        ("&sslmode=verify-full&sslrootcert=FOLDER/none.crt", "?sslrootcert="),
        ("&sslmode=verify-full&sslrootcert=FOLDER/junk", "?sslrootcert="),
        ("&sslmode=verify-full&sslrootcert=FOLDER", "?sslrootcert="),
        ("&sslmode=verify-full&sslrootcert=system", "?sslrootcert=system"),
        ("&sslmode=verify-full", ".postgresql/root.crt"),
        ("&sslmode=verify-full&sslrootcert=ROOT&sslcrl=FOLDER/none.crl", "?sslcrl="),
        ("&sslmode=require&sslcert=FOLDER/none.crt", "?sslcert="),
        ("&sslmode=require&sslcert=ROOT&sslkey=FOLDER/none.key", "&sslkey="),
        ("&sslmode=require&sslcert=ROOT&sslkey=FOLDER/other.key", "&sslkey="),
    ],
)
async def test_a_file_that_cannot_be_used_is_named_at_once(
    encrypted: Encrypted, tmp_path: Path, options: str, named: str
) -> None:
    make_root(tmp_path, "other")
    (tmp_path / "junk").write_text("no certificate")

    told = str(await told_by(url_for(encrypted, options.replace("FOLDER", str(tmp_path)))))

    assert named in told


async def test_a_file_that_is_not_needed_is_not_looked_at(guarded: GuardedCluster) -> None:
    url = guarded.new_url(new_user(), SECRET).replace(f":{guarded.port}/", ":1/")

    with pytest.raises(StoreUnavailable, match="nothing listens") as told:
        await windlass.connect(f"{url}&sslmode=prefer&sslrootcert=none.crt&timeout=0.2").open()

    assert told.value.retryable
