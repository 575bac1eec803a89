"""`windlass serve` as a real process."""

import asyncio
import signal
import socket
import ssl
import threading
import urllib.error
import urllib.request
from datetime import timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import windlass
from proofs.children import eventually
from tests.cli.serving import Served
from tests.servers.certificates import OPENSSL, make_certificate, make_root
from windlass.cli.door_options import read_bind
from windlass.cli.program import program


def new_token(file: Path, *roles: str) -> str:
    """Make a token with these roles and return it."""
    arguments = [part for role in roles for part in ("--role", role)]
    done = CliRunner().invoke(program, ["token", "new", "--name", "-".join(roles), *arguments, "--tokens", str(file)])
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def test_a_store_is_served_until_the_process_is_stopped(tmp_path: Path) -> None:
    with Served(tmp_path, "sqlite:///jobs.db") as served:
        assert served.call("/health/live") == {"ready": True}
        done = served.call("/api/v1/jobs", {"jobs": [{"queue": "email", "payload": {"to": "somebody"}}]})
        assert done["jobs"][0]["created"]

        assert served.stop() == 0

    assert "the store is sqlite:///jobs.db" in served.log
    assert "stopping" in served.log
    with windlass.connect_sync(f"sqlite:///{tmp_path}/jobs.db") as client:
        assert client.stats("email").pending == 1


def test_a_stop_answers_whoever_waits(tmp_path: Path) -> None:
    with Served(tmp_path, "sqlite:///jobs.db") as served:
        answers: list[object] = []
        waits = threading.Thread(
            target=lambda: answers.append(served.call("/api/v1/claims", {"queues": ["none"], "wait": 60}))
        )
        waits.start()
        # a claim that waits is a connection that the process has; nobody tells of it from outside
        assert eventually(lambda: _connections(served.process.pid) > 0, 10)

        assert served.stop() == 0

        waits.join(10)
    assert answers == [{"claims": []}]


def test_a_second_signal_stops_at_once_and_says_so_once(tmp_path: Path) -> None:
    with Served(tmp_path, "sqlite:///jobs.db") as served:
        host, _, port = served.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as half:
            # a request whose body never comes, and which is asked for: its route waits by then
            body = "Content-Type: application/json", "Content-Length: 9", "Expect: 100-continue"
            half.sendall("\r\n".join(("POST /api/v1/jobs HTTP/1.1", f"Host: {host}", *body, "", "")).encode())
            assert half.recv(1_000).startswith(b"HTTP/1.1 100 ")
            served.process.send_signal(signal.SIGTERM)
            assert eventually(lambda: "stopping" in served.log, 10), served.log

            assert served.stop() == 130

    assert served.log.count("stopped at once") == 1
    assert served.log.splitlines()[-1].endswith("what was under way may not have been answered")


def _connections(pid: int) -> int:
    links = [link for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    sockets = 0
    for link in links:
        try:
            sockets += str(link.readlink()).startswith("socket:")
        except FileNotFoundError:
            continue
    # the port itself, the loop's own pair
    return sockets - 3


async def test_a_server_works_over_http_and_the_serving_process_looks_after_the_store(tmp_path: Path) -> None:
    """The schedule that the app declares is fired by the serving process; the server only works."""
    tokens = tmp_path / "tokens.toml"
    token = new_token(tokens, "work", "produce")
    with Served(tmp_path, "sqlite:///jobs.db", "--tokens", str(tokens)) as served:
        app = windlass.App(served.url, token=token)
        ran = asyncio.Event()

        @app.every(timedelta(seconds=1))
        @app.job
        async def ticks() -> None:
            ran.set()

        @app.job
        async def double(number: int) -> int:
            return number * 2

        async with app, windlass.Server(app):
            handle = await double.enqueue(21)
            assert await handle.result(timeout=20) == 42
            async with asyncio.timeout(20):
                await ran.wait()
            names = sorted(record.name for record in await app.client.store.servers())
            assert names == ["serve", "windlass"]


def test_tokens_are_asked_for_and_may_be_taken_back_while_it_runs(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    viewer = new_token(tokens, "view")
    with Served(tmp_path, "memory://", "--tokens", str(tokens)) as served:
        assert served.call("/api/v1/queues", token=viewer) == {"queues": []}
        assert _status(served, "/api/v1/queues") == 401
        assert _status(served, "/api/v1/jobs/retry", {"ids": []}, token=viewer) == 403

        CliRunner().invoke(program, ["token", "remove", "view", "--tokens", str(tokens)])

        assert eventually(lambda: _status(served, "/api/v1/queues", token=viewer) == 401, 10)


def _status(served: Served, path: str, body: object = None, *, token: str | None = None) -> int:
    try:
        served.call(path, body, token=token)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code
    return 200


@pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
def test_it_is_served_by_tls_where_there_is_a_certificate(tmp_path: Path) -> None:
    root = make_root(tmp_path, "authority")
    host = make_certificate(tmp_path, "localhost", root)
    with Served(tmp_path, "memory://", "--tls-cert", str(host.file), "--tls-key", str(host.key)) as served:
        url = served.url.replace("https://127.0.0.1", "https://localhost")
        trusting = ssl.create_default_context(cafile=str(root.file))
        with urllib.request.urlopen(f"{url}/health/live", timeout=10, context=trusting) as reply:  # noqa: S310 - https
            assert reply.status == 200


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "no store is named"),
        (["nonsense://"], "nonsense"),
        (["memory://", "--bind", "0.0.0.0:0"], "can be reached from other machines, and no tokens are named"),
        (["memory://", "--bind", "localhost:http"], "give host:port"),
        (["memory://", "--bind", "127.0.0.1:99999"], "give host:port"),
        (["memory://", "--bind", "99999"], "'99999' is no address: give host:port"),
        (["memory://", "--bind", "8791x"], "'8791x' is no port, and no host without one: give host:port"),
        (["memory://", "--tokens", "nowhere.toml"], "nowhere.toml"),
        (["memory://", "--tls-key", "key.pem"], "give --tls-cert as well"),
        (["memory://", "--tls-cert", "nothing.pem"], "nothing.pem"),
        (["memory://", "--allow-host", "https://jobs"], "is no name of a host"),
        (["http://127.0.0.1:1"], "served by another process already"),
        (["sqlite:////nowhere/at/all/jobs.db"], "nowhere"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("WINDLASS_URL", "WINDLASS_TOKENS", "WINDLASS_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    before = signal.getsignal(signal.SIGTERM)

    done = CliRunner().invoke(program, ["serve", *arguments], prog_name="windlass")

    assert done.exit_code in (2, 5)
    assert said in done.output
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert signal.getsignal(signal.SIGTERM) == before


def test_two_signals_stop_it_at_once(tmp_path: Path) -> None:
    with Served(tmp_path, "memory://") as served:
        waits = threading.Thread(target=lambda: _status(served, "/api/v1/jobs?limit=1"))
        waits.start()
        waits.join(10)
        served.process.send_signal(signal.SIGINT)
        served.process.send_signal(signal.SIGINT)

        assert served.process.wait(10) in (0, 130)


@pytest.mark.parametrize(
    "text,place",
    [
        ("8791", ("127.0.0.1", 8791)),
        (":8791", ("127.0.0.1", 8791)),
        ("db.example", ("db.example", 8700)),
        ("10.0.0.1", ("10.0.0.1", 8700)),
        ("[::1]", ("::1", 8700)),
        ("[::1]:8791", ("::1", 8791)),
    ],
)
def test_a_port_alone_is_one_of_the_loopback(text: str, place: tuple[str, int]) -> None:
    option = click.Option(["--bind"], default="127.0.0.1:8700")

    assert read_bind(click.Context(program), option, text) == place
