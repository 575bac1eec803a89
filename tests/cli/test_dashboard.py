"""`windlass dashboard` as a real process, and what it refuses."""

import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

import windlass
from proofs.children import eventually
from tests.cli.serving import PATIENCE, Served, Shown
from windlass.cli.program import program
from windlass.exit_codes import ExitCode


def asked(shown: Served, path: str) -> tuple[int, str]:
    """Ask as a browser does; return the status and the text."""
    request = urllib.request.Request(f"{shown.url}{path}", headers={"Accept": "text/html"})  # noqa: S310 - of this test
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:  # noqa: S310 - as above
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def watching(shown: Served, path: str) -> socket.socket:
    """Open the stream of a page, and return when it has begun."""
    host, _, port = shown.url.removeprefix("http://").partition(":")
    stream = socket.create_connection((host, int(port)), timeout=PATIENCE)
    stream.sendall(f"GET /live{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    told = b""
    while b": ok" not in told:
        told += stream.recv(4_096)
    return stream


def test_a_store_is_shown_beside_whoever_works_on_it_until_ctrl_c(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with windlass.connect_sync(url) as client:
        client.enqueue("email", b"hello")
        with Shown(tmp_path, url) as shown:
            assert asked(shown, "/audit")[0] == 200
            assert shown.call("/api/v1/queues")["queues"][0]["pending"] == 1
            assert shown.call("/health/live") == shown.call("/health/ready") == {"ready": True}
            assert 'windlass_queue_depth{queue="email"' in asked(shown, "/metrics")[1]
            assert client.stats("email").pending == 1
            assert shown.call("/api/v1/servers")["servers"] == []

            with watching(shown, "/audit") as stream:
                shown.process.send_signal(signal.SIGINT)
                assert shown.process.wait(PATIENCE) == ExitCode.DONE
                told = b"".join(iter(lambda: stream.recv(4_096), b""))

    # the stream was ended, not cut off
    assert told.endswith(b"0\r\n\r\n")
    assert re.search(r"the dashboard is at http://127\.0\.0\.1:\d+/$", shown.log, re.MULTILINE)
    assert f"the store is {url}" in shown.log


def test_a_served_store_is_shown_and_steered(tmp_path: Path) -> None:
    with Served(tmp_path, "sqlite:///jobs.db") as served, Shown(tmp_path, served.url) as shown:
        shown.call("/api/v1/queues/pause", {"queue": "email"})

        assert served.call("/api/v1/queues")["queues"][0]["paused"]
        assert [entry["actor"] for entry in served.call("/api/v1/audit")["entries"]] == ["local"]


def test_a_store_that_one_process_owns_is_looked_at_and_says_where_to_change_it(tmp_path: Path) -> None:
    url = f"slatedb+file://{tmp_path}/jobs"
    with windlass.connect_sync(url) as owner:
        owner.enqueue("email", b"hello")
        with Shown(tmp_path, url) as shown:
            assert eventually(lambda: bool(shown.call("/api/v1/queues")["queues"]), 20)
            with pytest.raises(urllib.error.HTTPError) as refused:
                shown.call("/api/v1/queues/pause", {"queue": "email"})

            told = refused.value.read().decode()
            refused.value.close()
    assert "beside the process that owns it: change it through that one" in told


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "no store is named: windlass dashboard"),
        (["nonsense://"], "nonsense"),
        (["sqlite:///nothing.db"], "there is no store at sqlite:///nothing.db yet"),
        (["memory://"], "a store in memory lives with its process"),
        (["http://127.0.0.1:1?timeout=0.1"], "nothing listens"),
        (["sqlite:///jobs.db", "--bind", "0.0.0.0:0"], "can be reached from other machines, and no tokens are named"),
        (["sqlite:///jobs.db", "--bind", "localhost:http"], "give host:port, such as 127.0.0.1:8701"),
        (["sqlite:///jobs.db", "--tokens", "nowhere.toml"], "nowhere.toml"),
        (["sqlite:///jobs.db", "--tls-key", "key.pem"], "give --tls-cert as well"),
        (["sqlite:///jobs.db", "--allow-host", "https://jobs"], "is no name of a host"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("WINDLASS_URL", "WINDLASS_APP", "WINDLASS_TOKENS", "WINDLASS_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    with windlass.connect_sync("sqlite:///jobs.db"):
        pass
    files = set(tmp_path.iterdir())

    done = CliRunner().invoke(program, ["dashboard", *arguments], prog_name="windlass")

    assert done.exit_code in (ExitCode.WRONG_USAGE, ExitCode.STORE_UNAVAILABLE)
    assert said in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert set(tmp_path.iterdir()) == files


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with windlass.connect_sync(f"sqlite:///{tmp_path}/jobs.db"), socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"

        done = CliRunner().invoke(program, ["dashboard", f"sqlite:///{tmp_path}/jobs.db", "--bind", bind])

    assert done.exit_code == ExitCode.FAILED
    assert f"cannot listen on {bind}" in done.stderr


WITHOUT = """
import sys
sys.modules["jinja2"] = None
import windlass.http
try:
    windlass.http.make_dashboard
except ImportError as error:
    print(error)
from windlass.cli.program import program
program(["dashboard", "sqlite:///jobs.db"])
"""


def test_without_its_packages_it_names_the_extra(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE
    )

    assert done.returncode == ExitCode.WRONG_USAGE
    assert done.stdout == "windlass.http.make_dashboard needs the extra 'web': pip install 'windlass[web]'\n"
    assert done.stderr == "error: windlass dashboard needs the extra 'web': pip install 'windlass[web]'\n"
