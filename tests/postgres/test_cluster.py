import os
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from proofs.children import eventually
from tests.postgres.binaries import of_the_wheel
from tests.postgres.cluster import GIVEN, cluster, schema_of
from tests.postgres.ready import emptying
from tests.servers.another import other_process, told_by

of_its_own = pytest.mark.skipif(GIVEN is not None, reason="WINDLASS_TEST_POSTGRES names a server that is not ours")
ASKS = "from tests.postgres.cluster import cluster; print(cluster().url, cluster().log, flush=True); input()"
LETS_ANOTHER_ASK = f"""
import subprocess, sys
from tests.servers import run

run.begin()
subprocess.run([sys.executable, "-c", {ASKS!r}], input="that is all", text=True)
print("it is gone", flush=True)
input()
"""


@of_its_own
def test_processes_of_one_run_share_a_server_and_have_databases_of_their_own() -> None:
    here = urlsplit(cluster().url)

    with other_process(ASKS, run=os.environ["WINDLASS_TEST_RUN"]) as process:
        url, _ = told_by(process)

    assert urlsplit(url).netloc == here.netloc
    assert urlsplit(url).path != here.path


@of_its_own
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_server_ends_with_the_run_however_that_ends(how: signal.Signals) -> None:
    with other_process(ASKS) as process:
        url, log = told_by(process)
        psycopg.connect(url).close()
        process.send_signal(how)

    assert eventually(lambda: not Path(log).parent.exists())
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)


@of_its_own
def test_a_server_outlives_the_process_that_started_it() -> None:
    with other_process(LETS_ANOTHER_ASK) as process:
        url, log = told_by(process)
        assert told_by(process) == ["it", "is", "gone"]

        psycopg.connect(url).close()

    assert eventually(lambda: not Path(log).parent.exists())


@of_its_own
def test_programs_that_others_may_not_reach_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def may_enter(_folder: Path) -> bool:
        return False

    monkeypatch.setattr("tests.postgres.binaries.anybody_may_enter", may_enter)
    monkeypatch.setattr("os.geteuid", lambda: 0)

    programs = of_the_wheel(tmp_path)

    assert programs.is_relative_to(tmp_path)
    assert subprocess.run([programs / "postgres", "--version"], check=True, capture_output=True).stdout
    assert of_the_wheel(tmp_path) == programs


def test_a_schema_is_empty_and_goes_with_its_tables() -> None:
    here = cluster()
    url = here.new_schema()
    table = sql.Identifier(schema_of(url), "anything")
    here.run(sql.SQL("create table {} (number int)").format(table))

    here.drop_schema(url)

    assert here.run("select 1 from pg_namespace where nspname = %s", [schema_of(url)]) == []


def test_an_emptied_schema_holds_what_it_held_at_first(schema: str) -> None:
    here, name = cluster(), schema_of(schema)
    jobs, meta = sql.Identifier(name, "jobs"), sql.Identifier(name, "meta")
    here.run(sql.SQL("create table {} (number int generated always as identity, what text)").format(jobs))
    here.run(sql.SQL("create table {} (number int generated always as identity, what text)").format(meta))
    here.run(sql.SQL("insert into {} (what) values ('version')").format(meta))
    back = emptying(here, name)
    here.run(sql.SQL("insert into {} (what) values ('a job')").format(jobs))
    here.run(sql.SQL("update {} set what = 'another'").format(meta))

    here.run(back)

    assert here.run(sql.SQL("select what from {}").format(meta)) == [("version",)]
    assert here.run(sql.SQL("select what from {}").format(jobs)) == []
    assert here.run(sql.SQL("insert into {} (what) values ('a job') returning number").format(jobs)) == [(1,)]


@of_its_own
def test_sessions_of_others_are_seen_and_those_in_a_transaction_told_apart() -> None:
    here = cluster()
    before = here.sessions()

    with psycopg.connect(here.url) as connection:
        mine = connection.info.backend_pid
        assert here.sessions() - before == {mine}
        assert mine not in here.busy_sessions()
        connection.execute("select 1")
        assert mine in here.busy_sessions()

    assert eventually(lambda: mine not in here.sessions())
