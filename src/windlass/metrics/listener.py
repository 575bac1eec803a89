"""A small HTTP server in a thread of its own, for a few paths that are only read."""

import ipaddress
import logging
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

logger = logging.getLogger("windlass")

AT_ONCE: Final = 8
"""Requests that are answered at the same time; who comes then is hung up on."""
PATIENCE: Final = 5.0
"""Seconds that a caller may keep silent."""
LOOK_EVERY: Final = 0.1


class Answer(NamedTuple):
    """What a path gives."""

    status: int
    content_type: str
    body: bytes


class Listener:
    """Answers GET and HEAD on a port that is open already, until it is closed."""

    def __init__(self, port: socket.socket, answer: Callable[[str], Answer | None]) -> None:
        """Answer by `answer`, which is called in threads, with the path; None where there is nothing."""
        self._server = _Server(port, answer)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(LOOK_EVERY,), name="windlass metrics", daemon=True
        )

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Close the port here; whoever else has it keeps it."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: socket.socket, answer: Callable[[str], Answer | None]) -> None:
        super().__init__(port.getsockname()[:2], _Request, bind_and_activate=False)
        # the one that was made there is not needed
        self.socket.close()
        # two processes may share the port for a moment: whoever comes second to a caller must not wait for the next
        port.settimeout(0)
        self.socket = port
        self.answer = answer
        self.on_loopback = ipaddress.ip_address(port.getsockname()[0]).is_loopback
        self._free = threading.BoundedSemaphore(AT_ONCE)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the standard library's
        """Answer in a thread of its own, if there are not too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as above
        """Answer, and make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say it in the log: callers hang up, and that is nobody's concern."""
        del request
        logger.debug("a request for metrics from %s ended early", client_address, exc_info=True)  # noqa: LOG014 - it is called where one is handled


class _Request(BaseHTTPRequestHandler):
    server_version = "windlass"
    sys_version = ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        """Answer with a body."""
        self._reply(self._found())

    def do_HEAD(self) -> None:
        """Answer without one."""
        self._reply(self._found())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as the standard library's
        """Keep quiet: there is a request every few seconds."""

    def _found(self) -> Answer:
        server = self.server
        assert isinstance(server, _Server)  # noqa: S101 - for the type checker: nobody else makes one
        if server.on_loopback and not _is_loopback(_name(self.headers.get("Host", "localhost"))):
            # a page of somebody else's, whose name leads here
            return _plain(421, "this port is called localhost: to serve others, give it a host, as in 0.0.0.0:9400")
        try:
            found = server.answer(self.path.partition("?")[0])
        except Exception:
            logger.exception("metrics cannot be told")
            return _plain(500, "this process made a mistake: its log tells which")
        return found or _plain(404, "there are /metrics, /health/live and /health/ready")

    def _reply(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


def _name(host: str) -> str:
    """Return the name in a header `Host`, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _plain(status: int, text: str) -> Answer:
    return Answer(status, "text/plain; charset=utf-8", f"{text}\n".encode())
