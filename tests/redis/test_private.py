import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.exceptions import AuthenticationError, NoPermissionError, OutOfMemoryError

from proofs.children import eventually
from tests.redis.asking import ask
from tests.redis.binaries import REDIS_7
from tests.redis.private import DURABLE, PrivateRedis
from tests.servers.another import other_process, told_by

STARTS = """
from tests.redis.private import PrivateRedis
with PrivateRedis() as private:
    print(private.folder, private.pid, flush=True)
    input()
"""


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    users = {"worker": "on >of-the-worker ~{jobs}* &* +@all -@dangerous"}
    with PrivateRedis(conf={**DURABLE, "requirepass": "of: @everybody/", "maxmemory": "20mb"}, users=users) as private:
        yield private


def test_a_server_that_is_stopped_ends_by_itself_and_comes_back_with_its_data(private: PrivateRedis) -> None:
    port = private.port
    private.ask("SET", "kept", "1")

    private.stop()

    assert "bye bye" in private.log.read_text()
    private.start()
    assert private.port == port
    assert private.ask("GET", "kept") == "1"


def test_a_killed_server_that_is_durable_has_all_that_it_acknowledged(private: PrivateRedis) -> None:
    killed = private.pid
    for number in range(100):
        private.ask("RPUSH", "numbers", number)

    private.kill()

    assert not private.runs
    assert "bye bye" not in private.log.read_text()
    private.start()
    assert private.pid != killed
    assert private.ask("LLEN", "numbers") == 100


def test_nobody_comes_in_without_the_password(private: PrivateRedis) -> None:
    with pytest.raises(AuthenticationError):
        ask(f"redis://127.0.0.1:{private.port}/0", "PING")


def test_users_have_the_rights_that_they_are_given(private: PrivateRedis) -> None:
    worker = private.url_for("worker", "of-the-worker")

    assert ask(worker, "SET", "{jobs}|a", "1") is True

    with pytest.raises(NoPermissionError):
        ask(worker, "SET", "{others}|a", "1")


def test_settings_go_over_the_usual_ones_at_each_start(private: PrivateRedis) -> None:
    private.conf["maxmemory"] = "1mb"

    private.restart()

    with pytest.raises(OutOfMemoryError):
        private.ask("SET", "large", "x" * 2**20)


def test_a_server_that_does_not_start_tells_why_and_leaves_nothing() -> None:
    private = PrivateRedis(conf={"no-such-setting": "1"})

    with pytest.raises(RuntimeError, match="no-such-setting"), private:
        pass

    assert not private.folder.exists()


def test_a_server_ends_with_its_process_however_that_ends() -> None:
    with other_process(STARTS) as process:
        folder, pid = told_by(process)
        process.send_signal(signal.SIGKILL)

    assert eventually(lambda: not Path(folder).exists())
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@pytest.mark.skipif(REDIS_7 is None, reason="Debian's Redis is not installed")
def test_another_program_is_run_where_it_is_named() -> None:
    with PrivateRedis(program=REDIS_7) as private:
        assert private.ask("INFO", "server")["executable"] == str(REDIS_7)
