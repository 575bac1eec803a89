import asyncio

import pytest

from tests.engine.executors.given import a_job
from windlass.core.job import Job
from windlass.core.states import State
from windlass.engine.hooks import Hooks
from windlass.engine.settlement_writer import StateChange
from windlass.system import TaskSpawn

MOVES = [StateChange(a_job(), State.RUNNING, State.SUCCEEDED), StateChange(a_job(), State.RUNNING, State.DEAD)]


async def test_each_move_is_told_and_each_death_once_more() -> None:
    told: list[str] = []

    def plain(_job: Job, old: State, new: State) -> None:
        told.append(f"{old.value} to {new.value}")

    async def slow(_job: Job, _old: State, new: State) -> None:
        await asyncio.sleep(0)
        told.append(f"slow {new.value}")

    def mourn(job: Job) -> None:
        told.append(f"mourn {job.id[-1]}")

    hooks = Hooks([plain, slow], [mourn], TaskSpawn())
    hooks.tell(MOVES)
    assert told == []
    await hooks.drain()

    assert told == ["running to succeeded", "slow succeeded", "running to dead", "slow dead", "mourn 1"]


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), KeyboardInterrupt()])
async def test_a_hook_that_raises_is_logged_and_the_others_are_called(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[State] = []

    def falls(_job: Job, _old: State, _new: State) -> None:
        raise error

    hooks = Hooks([falls, lambda _job, _old, new: told.append(new)], [], TaskSpawn())
    hooks.tell(MOVES)
    await hooks.drain()

    assert told == [State.SUCCEEDED, State.DEAD]
    assert caplog.text.count("a hook failed") == 2


async def test_nobody_is_wanted_where_there_are_no_hooks() -> None:
    assert not Hooks([], [], TaskSpawn()).wanted
    assert Hooks([], [lambda _job: None], TaskSpawn()).wanted
    await Hooks([], [], TaskSpawn()).drain()


async def test_a_hook_that_is_cut_off_is_said(caplog: pytest.LogCaptureFixture) -> None:
    spawn = TaskSpawn()

    async def endless(_job: Job) -> None:
        await asyncio.Event().wait()

    hooks = Hooks([], [endless], spawn)
    hooks.tell(MOVES)
    await asyncio.sleep(0)
    await spawn.close()

    assert "a hook did not end with its server" in caplog.text
    await hooks.drain()
