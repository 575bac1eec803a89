"""Many who read large payloads, and many who say nothing, in front of one serving process that is probed meanwhile."""

import asyncio
import multiprocessing
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import windlass
from proofs.commands import ROOT
from proofs.http.http_serving import HOST, ServingProcess, admitted
from proofs.report import Report
from windlass import NewJob

PROMISE = (
    "readers of large payloads whose secrets are hidden, and connections that say nothing, keep nobody waiting: "
    "`/health/live` is answered within 50 ms at p99"
)
REMARK = (
    "The probe goes by a connection of its own each 10 ms, from another process on the same machine; the first line is "
    "the same probe without anybody else. Readers who are told 429 come back after a second."
)
LONGEST = 0.05
SIZE = 500_000
TOGETHER = 8
DEEP = ",".join(f"[][][][][][][].field{n}" for n in range(30))
"""Thirty secret paths, each of them through all that there is."""


@dataclass(frozen=True)
class Plan:
    readers: int = 60
    silent: int = 1_050
    seconds: float = 20.0
    """For each kind of payload."""


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("crowds", PROMISE, remark=REMARK)
    for name, payload in _payloads().items():
        _among_readers(report, folder / name.replace(" ", "-"), plan, name, payload)
    _among_the_silent(report, folder / "silent", plan)
    return report


def _payloads() -> dict[str, Any]:
    rows = [{"id": n, "name": f"row {n}", "password": "hush"} for n in range(SIZE // 48)]
    return {
        "text": {"text": "lorem ipsum monkey dolor " * (SIZE // 25)},
        "rows with secrets": {"rows": rows},
        "deep lists": [[[[[[[{"n": 1}]]]]]] for _ in range(SIZE // 22)],
    }


def _among_readers(report: Report, folder: Path, plan: Plan, name: str, payload: Any) -> None:  # noqa: ANN401 - JSON
    folder.mkdir()
    with _serving(folder) as (serving, token):
        asyncio.run(_fill(serving.url, payload))
        alone = _probed(serving, min(plan.seconds, 5.0))
        statuses = multiprocessing.get_context("spawn").Queue()
        readers = multiprocessing.get_context("spawn").Process(
            target=_read, args=(serving.url, token, plan.readers, statuses), daemon=True
        )
        readers.start()
        try:
            statuses.get(timeout=60)
            among = _probed(serving, plan.seconds)
        finally:
            readers.kill()
            readers.join()
    told: Counter[int] = Counter()
    while not statuses.empty():
        told[statuses.get()] += 1
    report.figure(f"{name}: /health/live alone, p99", _milliseconds(_p99(alone)))
    report.figure(f"{name}: among {plan.readers} readers, median", _milliseconds(sorted(among)[len(among) // 2]))
    report.figure(f"{name}: among {plan.readers} readers, p99", _milliseconds(_p99(among)))
    report.figure(f"{name}: pages read", told[200])
    late = [_milliseconds(_p99(among))] if _p99(among) > LONGEST else []
    report.never(f"{name}: p99 beyond {_milliseconds(LONGEST)}", late)
    report.never(f"{name}: other answers than 200 and 429", [each for each in told if each not in {200, 429}])
    report.needs(f"pages of {name}", given=told[200] > 0)


def _among_the_silent(report: Report, folder: Path, plan: Plan) -> None:
    folder.mkdir()
    refused: list[str] = []
    slowest = 0.0
    with _serving(folder) as (serving, token), _silent(serving, plan.silent):
        until = time.monotonic() + min(plan.seconds, 10.0)
        asked = 0
        while time.monotonic() < until:
            for path, known in (("/health/live", None), ("/health/ready", None), ("/api/v1/jobs", token)):
                begun = time.monotonic()
                status = _status(serving, path, known)
                slowest = max(slowest, time.monotonic() - begun)
                asked += 1
                if status != 200:
                    refused.append(f"{path}: {status}")
    report.figure(f"new connections beside {plan.silent:,} that say nothing", asked)
    report.figure("the slowest of their answers", _milliseconds(slowest))
    report.never("of them not answered with 200", refused)
    report.never("of them after more than a second", [_milliseconds(slowest)] if slowest > 1 else [])


@contextmanager
def _serving(folder: Path) -> Generator[tuple[ServingProcess, str]]:
    with admitted(folder / "tokens.toml"):
        words = ["token", "new", "--name", "looker", "--role", "view", "--tokens", str(folder / "tokens.toml")]
        made = subprocess.run(
            [sys.executable, "-m", "windlass", *words], cwd=ROOT, check=True, capture_output=True, text=True
        )
        with ServingProcess(folder) as serving:
            yield serving, made.stdout.strip()


@contextmanager
def _silent(serving: ServingProcess, count: int) -> Generator[None]:
    with ExitStack() as stack:
        for number in range(count):
            each = stack.enter_context(socket.socket())
            # half of them from one address, the others from many
            each.bind((HOST if number % 2 else f"127.0.0.{2 + number % 200}", 0))
            each.connect((HOST, serving.port))
        yield


async def _fill(url: str, payload: Any) -> None:  # noqa: ANN401 - JSON
    async with windlass.connect(url) as client:
        for _ in range(64 // TOGETHER):
            jobs = [NewJob("large", payload, headers={"windlass-secret": DEEP}) for _ in range(TOGETHER)]
            await client.enqueue_many(jobs)


def _probed(serving: ServingProcess, seconds: float) -> list[float]:
    """Return how long each probe took."""
    took: list[float] = []
    with socket.create_connection((HOST, serving.port)) as probe:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            begun = time.perf_counter()
            probe.sendall(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
            answer = probe.recv(65_536)
            took.append(time.perf_counter() - begun)
            assert answer.startswith(b"HTTP/1.1 200"), answer
            time.sleep(0.01)
    return took


def _status(serving: ServingProcess, path: str, token: str | None) -> int:
    header = "" if token is None else f"authorization: Bearer {token}\r\n"
    with suppress(OSError), socket.create_connection((HOST, serving.port), timeout=10) as made:
        made.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n{header}connection: close\r\n\r\n".encode())
        return int(made.recv(100).split()[1])
    return 0


def _read(url: str, token: str, count: int, statuses: "multiprocessing.Queue[int]") -> None:
    asyncio.run(_readers(url, token, count, statuses))


async def _readers(url: str, token: str, count: int, statuses: "multiprocessing.Queue[int]") -> None:
    statuses.put(0)
    await asyncio.gather(*(_reader(int(url.rpartition(":")[2]), token, statuses) for _ in range(count)))


async def _reader(port: int, token: str, statuses: "multiprocessing.Queue[int]") -> None:
    request = f"GET /api/v1/jobs?limit=32 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n".encode()
    while True:
        reader, writer = await asyncio.open_connection(HOST, port)
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                writer.write(request)
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                left = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                while left > 0 and (part := await reader.read(min(left, 1024 * 1024))):
                    left -= len(part)
                status = int(head.split()[1])
                statuses.put(status)
                if status != 200:
                    await asyncio.sleep(1)
        writer.close()


def _p99(took: list[float]) -> float:
    return sorted(took)[len(took) * 99 // 100]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1_000:.1f} ms"
