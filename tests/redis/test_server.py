import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.cluster import RedisCluster

from proofs.children import eventually
from tests.redis.asking import ask
from tests.redis.binaries import program
from tests.redis.cluster import new_cluster_url
from tests.redis.keys import keys_of, prefix_of, servers_of
from tests.redis.server import GIVEN, new_url, server
from tests.servers.another import RUN, other_process, told_by

of_its_own = pytest.mark.skipif(bool(GIVEN), reason="WINDLASS_TEST_REDIS names a server that is not ours")
ASKS = "from tests.redis.server import server; print(server(), flush=True); input()"


def is_refused(url: str) -> bool:
    parts = urlsplit(url)
    with socket.socket() as one:
        return one.connect_ex((parts.hostname or "", parts.port or 0)) != 0


@of_its_own
def test_processes_of_one_run_share_a_server() -> None:
    here = server()

    with other_process(ASKS, run=os.environ[RUN]) as process:
        assert told_by(process) == [here]


@of_its_own
def test_servers_end_with_the_run_however_that_ends() -> None:
    with other_process(ASKS) as process:
        [theirs] = told_by(process)
        folder = Path(ask(theirs, "CONFIG", "GET", "dir")[1])
        process.kill()

    assert theirs != server()
    assert eventually(lambda: not folder.exists())
    assert is_refused(theirs)


def test_a_server_that_is_given_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.redis.server.GIVEN", "redis://somewhere:1/2")

    assert server.__wrapped__() == "redis://somewhere:1/2"


def test_a_program_that_is_given_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_TEST_REDIS_BIN", "/somewhere/redis-server")

    assert program.__wrapped__() == Path("/somewhere/redis-server")


@of_its_own
def test_the_servers_program_is_that_of_the_run_and_keeps_nothing() -> None:
    assert ask(server(), "INFO", "server")["executable"] == str(program())
    assert ask(server(), "CONFIG", "GET", "appendonly") == ["appendonly", "no"]


def test_a_store_goes_with_all_of_its_keys_and_no_others() -> None:
    with new_url() as kept:
        key = f"{{{prefix_of(kept)}}}|a"
        ask(kept, "SET", key, "1")
        with new_url() as url:
            # more than are found at once, and one that is no text
            names = [f"{{{prefix_of(url)}|{number}}}".encode() for number in range(2500)]
            ask(url, "MSET", *(word for name in (*names, names[0] + b"\xff") for word in (name, "1")))
            assert len(keys_of(url)) == 2501

        assert keys_of(url) == set()
        assert keys_of(kept) == {key}


def test_a_store_of_a_test_that_failed_goes_too() -> None:
    def fails() -> None:
        with new_url() as url:
            urls.append(url)
            ask(url, "SET", f"{{{prefix_of(url)}}}|a", "1")
            raise AssertionError

    urls: list[str] = []
    with pytest.raises(AssertionError):
        fails()

    assert [keys_of(url) for url in urls] == [set()]


@pytest.mark.slow
def test_a_store_goes_from_all_masters_of_a_cluster() -> None:
    with new_cluster_url(spread=True) as url:
        port = urlsplit(servers_of(url)[0]).port
        assert port is not None
        with RedisCluster(host="127.0.0.1", port=port) as client:
            for number in range(50):
                client.set(f"{{{prefix_of(url)}|{number}}}|a", number)
        assert len(keys_of(url)) == 50
        assert all(ask(each, "DBSIZE") > 0 for each in servers_of(url))

    assert url.endswith("&spread=queues")
    assert keys_of(url) == set()
