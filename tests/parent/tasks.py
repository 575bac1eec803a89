"""The app that the tests of `windlass worker` serve, from a folder of their own; its handlers note what they do."""

import asyncio
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import windlass

app = windlass.App("sqlite:///jobs.db", lease=3600)


def note(what: str) -> None:
    with Path("notes").open("a") as file:
        file.write(f"{what} {os.getpid()}\n")


@app.lifespan
async def opened() -> AsyncIterator[None]:
    note("opened")
    if Path("broken").exists():
        message = "what the app needs is away"
        raise RuntimeError(message)
    yield
    note("closed")


@app.job
async def wait_for_file(name: str) -> str:
    """Run until a file is there, whatever stops are asked for."""
    note(f"began-{name}")
    while not Path(name).exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    note(f"ended-{name}")
    return name


@app.job
async def tell_loop() -> None:
    note(f"loop-{type(asyncio.get_running_loop()).__module__.split('.')[0]}")


@app.job
def hang(seconds: float) -> None:
    note("began-hang")
    time.sleep(seconds)


@app.job(timeout=0.3)
def hang_past_timeout(seconds: float) -> None:
    note("began-hang")
    time.sleep(seconds)


@app.job(timeout=0.2, max_attempts=2)
async def block_the_loop(seconds: float) -> None:
    note("began-block")
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point


@app.job
async def block_for_ever() -> None:
    note("began-block")
    time.sleep(600)  # noqa: ASYNC251 - that is the point


@app.job
async def ignore_cancel() -> None:
    note("began-ignore")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


@app.job
async def leave_a_thread_behind() -> None:
    threading.Thread(target=time.sleep, args=(60,)).start()
    note("began-thread")


@app.job
async def leave_an_orphan_behind() -> None:
    """Start a process whose own parent ends before it does."""
    orphan = "import os, time; os.fork() or (time.sleep(0.2), os._exit(0)); os._exit(0)"
    subprocess.run([sys.executable, "-c", orphan], check=True)  # noqa: ASYNC221
    note("began-orphan")


def end_fork() -> None:
    fork = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    fork.start()
    fork.terminate()
    fork.join(5)
    note(f"fork-ended-by-{fork.exitcode}")
    fork.kill()


@app.job
def end_a_fork() -> None:
    end_fork()


@app.job(process=True)
def end_a_fork_far_away() -> None:
    end_fork()


@app.job
async def say(text: str) -> None:
    logging.getLogger("tasks").info(text)
    note("said")


@app.job(process=True)
def say_far_away(text: str) -> None:
    logging.getLogger("tasks").info(text)
    note("said")
