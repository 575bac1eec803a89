import http.client
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from proofs.children import eventually
from windlass.metrics.listener import AT_ONCE, Answer, Listener

TEXT = "text/plain"


def answer(path: str) -> Answer | None:
    if path == "/broken":
        raise ZeroDivisionError
    return Answer(200, TEXT, b"well\n") if path == "/well" else None


@contextmanager
def listening(host: str = "127.0.0.1") -> Generator[int]:
    port = socket.create_server((host, 0))
    listener = Listener(port, answer)
    listener.start()
    try:
        yield port.getsockname()[1]
    finally:
        listener.close()


def ask(port: int, path: str, *, method: str = "GET", host: str = "localhost") -> tuple[int, bytes, str | None]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, headers={"Host": host})
        reply = connection.getresponse()
        return reply.status, reply.read(), reply.getheader("Content-Length")
    finally:
        connection.close()


def test_it_answers_with_and_without_a_body() -> None:
    with listening() as port:
        assert ask(port, "/well?x=1") == (200, b"well\n", "5")
        assert ask(port, "/well", method="HEAD") == (200, b"", "5")
        assert ask(port, "/other")[:2] == (404, b"there are /metrics, /health/live and /health/ready\n")
        assert ask(port, "/well", method="POST")[0] == 501


def test_a_mistake_is_told_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    with listening() as port:
        status, body, _ = ask(port, "/broken")

    assert (status, body) == (500, b"this process made a mistake: its log tells which\n")
    assert "metrics cannot be told" in caplog.text


@pytest.mark.parametrize(
    "bind, name, status",
    [
        ("127.0.0.1", "127.0.0.1:9400", 200),
        ("127.0.0.1", "[::1]:9400", 200),
        ("127.0.0.1", "127.8.9.1:9400", 200),
        ("127.0.0.1", "evil.example", 421),
        ("127.0.0.1", "127.0.0.1.evil.example", 421),
        ("0.0.0.0", "jobs.example:9400", 200),  # noqa: S104 - what an operator may want
    ],
)
def test_on_the_loopback_a_page_of_another_site_is_refused(bind: str, name: str, status: int) -> None:
    with listening(bind) as port:
        assert ask(port, "/well", host=name)[0] == status


def test_callers_who_keep_silent_or_talk_nonsense_do_no_harm() -> None:
    with listening() as port:
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(AT_ONCE + 4)]
        assert eventually(lambda: threading.active_count() >= AT_ONCE, 5)
        for caller in silent:
            with suppress(OSError):
                caller.sendall(b"\x00\xff nonsense\r\n\r\n")
            caller.close()

        assert eventually(lambda: _answers(port), 5)


def _answers(port: int) -> bool:
    with suppress(OSError, http.client.HTTPException):
        return ask(port, "/well")[0] == 200
    return False


def test_two_who_share_a_port_answer_by_turns_and_one_of_them_may_leave() -> None:
    port = socket.create_server(("127.0.0.1", 0))
    first, second = Listener(port, answer), Listener(port.dup(), answer)
    number = port.getsockname()[1]
    first.start()
    second.start()

    blocks = port.getblocking()
    shared = {ask(number, "/well")[0] for _ in range(10)}
    first.close()
    alone = {ask(number, "/well")[0] for _ in range(10)}
    second.close()

    assert shared == alone == {200}
    # whoever comes second to a caller must not wait for the next one
    assert not blocks
