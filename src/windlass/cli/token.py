"""`windlass token`: who may use what `windlass serve` serves."""

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import Final

import click

from windlass.api.roles import Role
from windlass.cli.errors import NameNotFound
from windlass.cli.known_commands import DefaultGroup
from windlass.cli.options import output_options
from windlass.cli.output import note, print_json, print_table, say
from windlass.cli.times import shown_at
from windlass.core.errors import InvalidValue
from windlass.core.names import check_name
from windlass.http.token_file import change_file, read_file
from windlass.http.token_table import read_rate
from windlass.http.tokens import KnownToken, hash_of, new_secret
from windlass.system import SystemClock

DEFAULT_FILE: Final = "windlass-tokens.toml"

file_option = click.option(
    "--tokens",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_FILE,
    show_default=True,
    envvar="WINDLASS_TOKENS",
    metavar="FILE",
    help="The file of tokens, else WINDLASS_TOKENS.",
)


@click.group(cls=DefaultGroup, default="list")
def token() -> None:
    """Make, list and remove the tokens of `windlass serve`.

    A token is shown once, when it is made; the file keeps its hash. A process that serves sees a changed file within a
    second. Without a command the tokens are listed.
    """


@token.command()
@click.option("--name", required=True, metavar="NAME", help="Whose it is, for logs and for its end.")
@click.option(
    "--role",
    "roles",
    required=True,
    multiple=True,
    type=click.Choice([role.value for role in Role]),
    help="What it may do; may be given several times.",
)
@click.option(
    "--queue", "queues", multiple=True, metavar="QUEUE", help="Limit it to this queue; may be given several times."
)
@click.option("--rate", type=float, metavar="NUMBER", help="How many requests a second it may make.")
@file_option
@output_options
def new(
    *, name: str, roles: Sequence[str], queues: Sequence[str], rate: float | None, file: Path, as_json: bool
) -> None:
    """Make a token and print it, this once.

    Its hash goes into the file, which is made when it is not there, and which nobody but its owner may read.

    \b
        windlass token new --name ci --role produce --queue email
        windlass token new --name workers --role work --role produce
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    secret = new_secret()
    made = KnownToken(
        name=check_name(name, "token"),
        roles=frozenset(map(Role, roles)),
        sha256=hash_of(secret),
        queues=frozenset(check_name(each, "queue") for each in queues) or None,
        rate=None if rate is None else read_rate(rate),
        created_at=SystemClock().now().replace(microsecond=0),
    )
    change_file(file, lambda before: [*before, _new_among(made, before)])
    if as_json:
        print_json({"token": secret, **_document(made), "file": str(file)})
        return
    say(secret)
    note(f"keep it, it is not shown again; {name} is in {file} by its hash")


@token.command("list")
@file_option
@output_options
def list_(*, file: Path, as_json: bool) -> None:
    """List the tokens by name, and what each may do."""
    found = read_file(file)
    if as_json:
        print_json({"tokens": [_document(each) for each in found]})
    elif found:
        print_table(["NAME", "ROLES", "QUEUES", "RATE", "CREATED"], [_row(each) for each in found], folds=["QUEUES"])
    else:
        note(f"no tokens in {file}: nobody is let in")


@token.command()
@click.argument("name")
@file_option
@output_options
def remove(*, name: str, file: Path, as_json: bool) -> None:
    """Remove a token: within a second it is worth nothing, and its sessions in browsers end."""
    names = [each.name for each in read_file(file)]
    if name not in names:
        raise NameNotFound(f"no token in {file} is called {name!r}: there are {', '.join(names) or 'none'}")
    change_file(file, lambda before: [each for each in before if each.name != name])
    if as_json:
        print_json({"removed": name})
    else:
        say(f"{name} is removed")


def _new_among(made: KnownToken, before: Sequence[KnownToken]) -> KnownToken:
    if any(each.name == made.name for each in before):
        message = f"there is a token called {made.name!r} already: remove it first, or choose another name"
        raise InvalidValue(message)
    return made


def _document(token: KnownToken) -> dict[str, object]:
    return {
        "name": token.name,
        "roles": _roles(token),
        "queues": None if token.queues is None else sorted(token.queues),
        "rate": token.rate,
        "created_at": None if token.created_at is None else token.created_at.astimezone(UTC),
    }


def _row(token: KnownToken) -> list[str]:
    return [
        token.name,
        ", ".join(_roles(token)),
        "all" if token.queues is None else ", ".join(sorted(token.queues)),
        "" if token.rate is None else f"{token.rate:g}/s",
        "" if token.created_at is None else shown_at(token.created_at, UTC),
    ]


def _roles(token: KnownToken) -> list[str]:
    return [role.value for role in Role if role in token.roles]
