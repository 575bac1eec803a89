"""The options of the commands that listen: where, for whom, and by which names."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from windlass.cli.errors import needs_extra
from windlass.http.crowd import MOST_CONNECTIONS, MOST_PER_ADDRESS

Command: TypeAlias = Callable[..., Any]

LAST_PORT: Final = 65_535
_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_OPTIONS: Final = (
    click.option(
        "--tokens",
        type=_FILE,
        envvar="WINDLASS_TOKENS",
        metavar="FILE",
        help="The file of tokens that `windlass token new` writes, else WINDLASS_TOKENS.",
    ),
    click.option("--insecure", is_flag=True, help="Let everybody in who reaches the address, without any token."),
    click.option(
        "--allow-host",
        "allowed_hosts",
        multiple=True,
        metavar="NAME",
        help="A name that callers may use for this host; may be given several times.",
    ),
    click.option("--tls-cert", type=_FILE, metavar="FILE", help="Serve by https."),
    click.option("--tls-key", type=_FILE, metavar="FILE", help="Its private key."),
    click.option("--behind-tls", is_flag=True, help="A proxy in front of it ends TLS: browsers come by https."),
    click.option(
        "--max-connections",
        "connections",
        type=click.IntRange(min=1),
        default=MOST_CONNECTIONS,
        show_default=True,
        metavar="N",
        help="How many connections may be open.",
    ),
    click.option(
        "--max-per-address",
        "connections_per_address",
        type=click.IntRange(min=1),
        default=MOST_PER_ADDRESS,
        show_default=True,
        metavar="N",
        help="How many of them may come from one address that no token came by yet.",
    ),
)
_NAMES: Final = (
    "tokens",
    "insecure",
    "allowed_hosts",
    "tls_cert",
    "tls_key",
    "behind_tls",
    "connections",
    "connections_per_address",
)


def door_options(bind: str) -> Callable[[Command], Command]:
    """Give a command the options of a door, which it gets as one `door`; it is at `bind` unless the user says."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def with_door(*, bind: tuple[str, int], **given: Any) -> Any:  # noqa: ANN401 - as the command's
            with needs_extra(click.get_current_context().command_path, "web"):
                from windlass.http.front_door import DoorOptions  # noqa: PLC0415
            door = DoorOptions(host=bind[0], port=bind[1], **{name: given.pop(name) for name in _NAMES})
            return function(door=door, **given)

        decorated: Command = with_door
        for option in reversed(_OPTIONS):
            decorated = option(decorated)
        return click.option(
            "--bind",
            default=bind,
            show_default=True,
            callback=read_bind,
            metavar="[HOST:]PORT",
            help="Where to listen; an address that other machines reach needs tokens.",
        )(decorated)

    return decorate


def read_bind(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, int]:
    """Read `host:port`, `[::1]:port`, `host`, `:port` or `port`."""
    usual = str(param.default)
    host, colon, port = value.rpartition(":")
    if value.isdecimal():
        host, port = "", value
    elif not colon and value[:1].isdecimal() and "." not in value:
        message = f"{value!r} is no port, and no host without one: give host:port, such as {usual}, or a port alone"
        raise click.BadParameter(message, ctx, param)
    elif not colon or value.endswith("]"):
        host, port = value, usual.rpartition(":")[2]
    if not port.isascii() or not port.isdecimal() or int(port) > LAST_PORT:
        message = f"{value!r} is no address: give host:port, such as {usual}"
        raise click.BadParameter(message, ctx, param)
    return host.strip("[]") or "127.0.0.1", int(port)
