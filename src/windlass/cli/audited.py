"""Who steers from this terminal, and what was done, written down in the store."""

import getpass
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from windlass.cli.output import note
from windlass.client.client import Client
from windlass.core.errors import WindlassError
from windlass.core.looks import AuditEntry
from windlass.core.names import MAX_NAME, check_name

F = TypeVar("F", bound=Callable[..., Any])

MOST_NAMED: Final = 20
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_.:/@#-]")


def as_option(function: F) -> F:
    """Let the user say in whose name something is done."""
    return click.option(
        "--as", "actor", callback=_read_actor, metavar="NAME", help="Who does it, for the audit: by default user@host."
    )(function)


def _read_actor(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    del ctx, param
    return this_person() if value is None else check_name(value, "name")


def this_person() -> str:
    """Return who sits at this terminal: `user@host`."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        # no such user on this machine, as in many containers
        user = "unknown"
    return _STRANGE.sub("-", f"{user}@{socket.gethostname()}")[:MAX_NAME]


async def write_down(
    client: Client, actor: str, action: str, target: str, detail: Mapping[str, str] | None = None
) -> None:
    """Write that somebody did something.

    Where the store is served the serving side has done so, under the name of the token. It is done by now, so that a
    store which cannot write this is no error of the command: a line on stderr tells.
    """
    if client.store.features.served:
        return
    entry = AuditEntry(client.clock.now(), actor, action, target, detail or {})
    try:
        await client.store.write_audit((entry,))
    except WindlassError as error:
        note(f"warning: the audit could not be written: {error}")


async def write_down_jobs(
    client: Client, actor: str, action: str, ids: Sequence[str], detail: Mapping[str, str] | None = None
) -> None:
    """Write that somebody changed these jobs, if there is one; of many some are named."""
    if not ids:
        return
    if len(ids) == 1:
        await write_down(client, actor, action, ids[0], detail)
        return
    named = " ".join(ids[:MOST_NAMED]) + (" ..." if len(ids) > MOST_NAMED else "")
    await write_down(client, actor, action, f"{len(ids):,} jobs", {**(detail or {}), "ids": named})
