from collections.abc import Iterator
from typing import Literal

import psycopg
import pytest

from tests.postgres.binaries import POSTGRES_15
from tests.postgres.private import DURABLE, PrivateCluster


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateCluster]:
    with PrivateCluster(conf=DURABLE) as private:
        yield private


def committed(private: PrivateCluster) -> None:
    with psycopg.connect(private.url) as connection:
        connection.execute("drop table if exists kept")
        connection.execute("create table kept as select 1 as number")


def kept(private: PrivateCluster) -> list[tuple[int]]:
    with psycopg.connect(private.url) as connection:
        return connection.execute("select number from kept").fetchall()


@pytest.mark.parametrize("mode", ["smart", "fast", "immediate"])
def test_a_restart_is_on_the_same_port_and_data(
    private: PrivateCluster, mode: Literal["smart", "fast", "immediate"]
) -> None:
    committed(private)

    private.restart(mode)

    assert kept(private) == [(1,)]


def test_a_killed_server_starts_again_while_sessions_of_it_are_left(private: PrivateCluster) -> None:
    committed(private)
    with psycopg.connect(private.url) as connection:
        connection.execute("select 1")

        private.kill()
        private.start()

        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
    assert kept(private) == [(1,)]


def test_settings_go_over_the_usual_ones(private: PrivateCluster) -> None:
    with psycopg.connect(private.url) as connection:
        assert connection.execute("show fsync").fetchone() == ("on",)
        assert connection.execute("show max_connections").fetchone() == ("300",)


def test_a_server_that_does_not_start_tells_why_and_leaves_nothing() -> None:
    private = PrivateCluster(conf={"no_such_setting": "1"})

    with pytest.raises(RuntimeError, match="no_such_setting"), private:
        pass

    assert not private.folder.exists()


@pytest.mark.skipif(POSTGRES_15 is None, reason="Debian's Postgres 15 is not installed")
def test_another_version_is_started_by_its_programs() -> None:
    with PrivateCluster(programs=POSTGRES_15) as private:
        assert private.as_cluster().version == 15
