"""The bare engine of HTTP: a route that gives back what it gets: `python -m benchmarks.servers.http_echo`."""

import asyncio
import signal
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.servers.our_loop import on_our_loop
from benchmarks.workloads.other_process import READY

# seconds; nobody is left to end it when its parent was killed
LONGEST_LIFE = 300
PATH = "/echo"


async def echo(request: Request) -> Response:
    """Answer with the body of the request."""
    return Response(await request.body(), media_type="application/json")


def main() -> None:
    """Say the port, and serve until the input ends."""
    signal.alarm(LONGEST_LIFE)
    on_our_loop(_serve())


async def _serve() -> None:
    app = Starlette(routes=[Route(PATH, echo, methods=["POST"])])
    config = uvicorn.Config(app, port=0, http="httptools", log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.01)
    port: int = server.servers[0].sockets[0].getsockname()[1]
    sys.stdout.buffer.write(READY + b"%d\n" % port)
    sys.stdout.buffer.flush()
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    main()
