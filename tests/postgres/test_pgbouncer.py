import psycopg
import pytest

from tests.postgres.cluster import GIVEN, cluster, dsn_of, schema_of
from tests.postgres.pgbouncer import skip_without_pgbouncer, through_pgbouncer


def test_a_session_is_lent_for_one_transaction_only() -> None:
    url = through_pgbouncer(cluster().url)
    with psycopg.connect(url) as one, psycopg.connect(url) as other:
        first = one.execute("select pg_backend_pid()").fetchone()
        one.commit()

        assert other.execute("select pg_backend_pid()").fetchone() == first
        assert one.execute("select pg_backend_pid()").fetchone() != first


@pytest.mark.skipif(GIVEN is not None, reason="a given server knows one user only")
def test_the_sessions_that_it_keeps_are_told_from_others() -> None:
    url, before = through_pgbouncer(cluster().url), cluster().sessions()

    with psycopg.connect(url) as connection:
        connection.execute("select 1")
        assert cluster().busy_sessions()

    assert cluster().sessions() <= before


def test_the_same_schema_is_reached_both_ways(schema: str, pooled_schema: str) -> None:
    assert schema_of(pooled_schema) == schema_of(schema)
    assert dsn_of(pooled_schema) != dsn_of(schema)
    with psycopg.connect(dsn_of(pooled_schema)) as connection:
        found = connection.execute("select 1 from pg_namespace where nspname = %s", [schema_of(schema)])
        assert found.fetchone() == (1,)


@pytest.mark.parametrize(
    "environment, outcome",
    [
        ({}, "skip"),
        ({"WINDLASS_CI": "1"}, "fail"),
        ({"WINDLASS_CI": "1", "WINDLASS_TEST_NO_PGBOUNCER": "apt has no such package"}, "skip"),
    ],
)
def test_a_missing_pgbouncer_is_a_failure_in_ci_unless_it_cannot_be_installed(
    environment: dict[str, str], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.postgres.pgbouncer.PGBOUNCER", None)
    for name in ("WINDLASS_CI", "WINDLASS_TEST_NO_PGBOUNCER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(BaseException, match="not installed") as raised:
        skip_without_pgbouncer()

    assert isinstance(raised.value, {"skip": pytest.skip.Exception, "fail": pytest.fail.Exception}[outcome])
