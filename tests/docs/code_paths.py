"""Files of the package that one enqueue, one job or one page runs through: `python -m tests.docs.code_paths page`."""

import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Final

import windlass
from windlass.http import make_dashboard

ROOT: Final = Path(windlass.__file__).parent


class Trace:
    """Files whose functions were called, in the order of the first call, while the trace was on."""

    def __init__(self) -> None:
        self.is_on = False
        self.files: list[str] = []

    def start(self) -> None:
        """Trace the calls of every thread that begins from now on."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if self.is_on and event == "call" and name.startswith(str(ROOT)):
            file = Path(name).relative_to(ROOT).as_posix()
            if file not in self.files:
                self.files.append(file)


async def _enqueue(trace: Trace, _: windlass.App, handler: windlass.Handler[[int], None]) -> None:
    for number in range(5):
        await handler.enqueue(number)
    await asyncio.sleep(0.2)
    trace.is_on = True
    await handler.enqueue(1)
    trace.is_on = False


async def _work(trace: Trace, app: windlass.App, handler: windlass.Handler[[int], None]) -> None:
    async with windlass.Server(app, windlass.ServerConfig(concurrency=1)):
        for _ in range(5):
            await (await handler.enqueue(1)).wait(10)
        handle = await handler.options(delay=0.3).enqueue(1)
        trace.is_on = True
        await asyncio.sleep(0.8)
        trace.is_on = False
        assert (await handle.job()).state == "succeeded"


async def _page(trace: Trace, app: windlass.App, handler: windlass.Handler[[int], None]) -> None:
    path = f"/jobs/{(await handler.enqueue(1)).id}"
    site = make_dashboard(app.client, insecure=True)
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 9), "headers": [(b"host", b"127.0.0.1:8000"), (b"accept", b"text/html")],
    }  # fmt: skip
    statuses: list[int] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(int(str(message["status"])))

    for turn in range(2):
        trace.is_on = turn == 1
        await site(scope, receive, send)  # type: ignore[arg-type]
    trace.is_on = False
    assert statuses == [200, 200]
    await site.close()


SCENARIOS: Final[dict[str, Callable[[Trace, windlass.App, windlass.Handler[[int], None]], Awaitable[None]]]] = {
    "enqueue": _enqueue,
    "work": _work,
    "page": _page,
}


async def _main(scenario: str, url: str) -> list[str]:
    trace = Trace()
    trace.start()
    app = windlass.App(url)

    @app.job
    async def noop(number: int) -> None:
        del number

    async with app:
        await SCENARIOS[scenario](trace, app, noop)
    return trace.files


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        files = asyncio.run(_main(sys.argv[1], f"sqlite:///{folder}/jobs.db"))
    sys.stdout.write(json.dumps(files) + "\n")
