import asyncio
import signal
import sys
from pathlib import Path

import pytest

import windlass
from tests.parent.given import Running, enqueue
from windlass.config.settings import EventLoop
from windlass.event_loop import runner_on

ON_EACH = pytest.mark.parametrize("wanted, module", [("auto", "uvloop"), ("uvloop", "uvloop"), ("asyncio", "asyncio")])


async def module_of_loop() -> str:
    return type(asyncio.get_running_loop()).__module__.split(".")[0]


@ON_EACH
def test_a_program_runs_on_the_loop_that_is_wanted(wanted: EventLoop, module: str) -> None:
    with runner_on(wanted) as runner:
        assert runner.run(module_of_loop()) == module


def test_without_uvloop_a_program_runs_on_the_loop_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)

    with runner_on("auto") as runner:
        assert runner.run(module_of_loop()) == "asyncio"


def test_uvloop_where_it_is_not_installed_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)

    with pytest.raises(windlass.MissingExtra, match=r"pip install 'windlass\[uvloop\]'"):
        runner_on("uvloop")


@ON_EACH
def test_a_server_that_is_run_without_a_loop_gets_the_one_of_its_config(wanted: EventLoop, module: str) -> None:
    app = windlass.App("memory://")
    server = windlass.Server(app, windlass.ServerConfig(event_loop=wanted))
    ends: list[asyncio.Task[None]] = []
    seen: list[str] = []

    @app.lifespan
    async def look():  # type: ignore[no-untyped-def]  # noqa: ANN202 - what it yields does not matter
        seen.append(await module_of_loop())
        ends.append(asyncio.get_running_loop().create_task(server.stop()))
        yield None

    server.run()

    assert seen == [module]


@ON_EACH
def test_a_worker_runs_on_the_loop_that_its_flag_wants(tmp_path: Path, wanted: EventLoop, module: str) -> None:
    with Running(tmp_path, "--event-loop", wanted) as running:
        enqueue(tmp_path, "tell_loop")

        running.noted(f"loop-{module}")

        running.signal(signal.SIGTERM)
        assert running.ends() == 0
