import http.client
import re
import signal
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from proofs.children import eventually
from tests.metrics.given import values
from tests.parent.given import Running, enqueue
from windlass.parent.worker_metrics import WorkerMetrics

BEGAN = "process_start_time_seconds"


def ports(running: Running, count: int) -> list[int]:
    """The ports that it says its metrics are on, and that callers can reach."""
    running.says("/metrics", count)
    return [int(port) for port in re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", running.log())]


def ask(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def metrics(port: int) -> dict[str, float]:
    """What is told; nothing while nobody has come up to answer."""
    with suppress(OSError, http.client.HTTPException):
        return values(ask(port, "/metrics")[1])
    return {}


def test_each_child_tells_its_numbers_also_while_its_event_loop_is_blocked(tmp_path: Path) -> None:
    with Running(tmp_path, "--metrics", "0", "--processes", "2", "--concurrency", "3") as running:
        running.says("ready: ")
        both = ports(running, 2)
        assert eventually(lambda: [metrics(port).get("windlass_worker_ready") for port in both] == [1, 1], 10)
        enqueue(tmp_path, "block_for_ever")
        running.noted("began-block")

        told = [metrics(port) for port in both]
        live = [ask(port, "/health/live") for port in both]

        assert [each["windlass_worker_slots"] for each in told] == [3, 3]
        assert sum(each["windlass_worker_running"] for each in told) == 1
        assert live == [(200, b'{"ready":true}')] * 2
        assert [ask(port, "/health/ready")[0] for port in both] == [200, 200]
        running.signal(signal.SIGQUIT)
        assert running.ends() == 131


def test_a_child_that_takes_the_place_of_another_has_its_port(tmp_path: Path) -> None:
    enqueue(tmp_path, "hang_past_timeout", {"seconds": 600})
    with Running(tmp_path, "--metrics", "0", "--concurrency", "2", "--shutdown-timeout", "60s") as running:
        [port] = ports(running, 1)
        assert eventually(lambda: bool(metrics(port)), 10)
        first = metrics(port)[BEGAN]

        running.says("is replaced")

        # the one that is replaced drains, since its thread goes on: nobody is answered by it
        assert eventually(lambda: metrics(port).get(BEGAN, first) > first, 20)
        assert len({metrics(port)[BEGAN] for _ in range(20)}) == 1
        assert len(running.children()) == 2
        running.signal(signal.SIGQUIT)
        assert running.ends() == 131


def test_a_child_whose_server_has_not_started_lives_and_is_not_ready() -> None:
    port = socket.create_server(("127.0.0.1", 0))
    number = port.getsockname()[1]
    starting = WorkerMetrics(port.detach(), lambda: None)

    live, (status, body) = ask(number, "/health/live")[0], ask(number, "/health/ready")
    starting.close()

    assert (live, status) == (200, 503)
    assert msgspec.json.decode(body) == {"ready": False, "reasons": ["the server starts, or is stopping"]}


def test_a_port_that_is_taken_is_an_error_at_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Running(tmp_path, "--metrics", str(port)) as running:
            code = running.ends()

    assert code == 1
    assert f"cannot serve metrics on 127.0.0.1:{port}: Address already in use" in running.log()
    assert running.notes() == []
