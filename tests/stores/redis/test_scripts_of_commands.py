"""Scripts follow the facts of their commands: when they refuse in a moved store, and when they keep their reply."""

from importlib.resources import files
from typing import Any

import pytest

from tests.stores.redis.calls import WRITES
from windlass.core.commands import COMMANDS, DeleteMoved
from windlass.core.store import Store
from windlass.core.store_calls import Command, RepeatSafety
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.requests import Ask
from windlass.stores.redis.scripts import script

HOT = {"enqueue", "enqueue_one", "enqueue_keyed", "claim", "settle", "succeed"}
"""Scripts of the calls that are no command of `do`."""


@pytest.fixture
async def scripts(store: Store, monkeypatch: pytest.MonkeyPatch) -> dict[str, type[Command[Any]]]:
    """The script that each command runs, as it was seen to run."""
    seen = dict[str, type[Command[Any]]]()
    execute = Caller.execute

    async def seen_to_execute(caller: Caller, command: Command[Any], name: str, ask: Ask) -> bytes:
        seen[name] = type(command)
        return await execute(caller, command, name, ask)

    monkeypatch.setattr(Caller, "execute", seen_to_execute)
    for scenario in WRITES:
        call = await scenario(store, scenario.__name__)
        await call(store)
    return seen


async def test_each_command_has_one_script(scripts: dict[str, type[Command[Any]]]) -> None:
    # whose repeat needs no earlier reply
    assert {*scripts.values()} == {*COMMANDS} - {DeleteMoved}
    assert len(scripts) == len(COMMANDS) - 1


async def test_those_scripts_refuse_in_a_moved_store_whose_commands_begin_work(
    scripts: dict[str, type[Command[Any]]],
) -> None:
    beginning = {name for name, command in scripts.items() if command.begins_work}

    # by the last one a queue becomes known
    assert _scripts_with("return AWAY") == beginning | {
        "enqueue",
        "enqueue_one",
        "enqueue_keyed",
        "claim",
        "know_queue",
    }


async def test_those_scripts_keep_their_reply_whose_commands_do_more_when_repeated(
    scripts: dict[str, type[Command[Any]]],
) -> None:
    repeated_by_reply = {name for name, command in scripts.items() if command.repeat is not RepeatSafety.SAME}

    # the last one is part of a claim
    assert _scripts_with("'receipt|'") == repeated_by_reply | HOT | {"set_aside"}


def _scripts_with(mark: str) -> set[str]:
    folder = files("windlass.stores.redis") / "scripts"
    names = [file.name.removesuffix(".lua") for file in folder.iterdir() if file.is_file()]
    return {name for name in names if mark in script(name).text}
