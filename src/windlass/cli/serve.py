"""`windlass serve`: any store over HTTP, for other processes, machines and languages."""

import asyncio
import logging
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from windlass.app.sources import OF_CLIENT
from windlass.cli.options import debug_option
from windlass.config import Resolved, find_project, resolve
from windlass.config.masked import masked
from windlass.connect import connect
from windlass.core.errors import InvalidValue
from windlass.engine.config import ServerConfig
from windlass.exit_codes import ExitCode
from windlass.http.serving import ServeOptions, Serving
from windlass.parent.log_format import Logs
from windlass.parent.signals import GRACEFUL

logger = logging.getLogger("windlass")

DEFAULT_BIND: Final = "127.0.0.1:8700"
NO_STORE: Final = (
    "no store is named: windlass serve sqlite:///jobs.db, or set WINDLASS_URL, or write url in [tool.windlass] of "
    "pyproject.toml"
)


def read_bind(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, int]:
    """Read `host:port`, `[::1]:port`, `host` or `:port`."""
    host, colon, port = value.rpartition(":")
    if not colon or value.endswith("]"):
        host, port = value, DEFAULT_BIND.rpartition(":")[2]
    if not port.isascii() or not port.isdecimal() or int(port) > 65_535:  # noqa: PLR2004 - the last port
        message = f"{value!r} is no address: give host:port, such as {DEFAULT_BIND}"
        raise click.BadParameter(message, ctx, param)
    return host.strip("[]") or "127.0.0.1", int(port)


@click.command()
@click.argument("url", required=False)
@click.option(
    "--bind",
    default=DEFAULT_BIND,
    show_default=True,
    callback=read_bind,
    metavar="HOST:PORT",
    help="Where to listen; an address that other machines reach needs tokens.",
)
@click.option(
    "--tokens",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="WINDLASS_TOKENS",
    metavar="FILE",
    help="The file of tokens that `windlass token new` writes, else WINDLASS_TOKENS.",
)
@click.option("--insecure", is_flag=True, help="Let everybody in who reaches the address, without any token.")
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="A name that callers may use for this host; may be given several times.",
)
@click.option("--tls-cert", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Serve by https.")
@click.option("--tls-key", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Its private key.")
@click.option("--behind-tls", is_flag=True, help="A proxy in front of it ends TLS: browsers come by https.")
@click.option(
    "--max-body",
    type=click.IntRange(min=1_024),
    default=32 * 1024 * 1024,
    show_default=True,
    metavar="BYTES",
    help="The largest request that is read.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    metavar="N",
    help="How many connections may be open.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the log as JSON, one object a line.")
@debug_option
def serve(
    *,
    url: str | None,
    bind: tuple[str, int],
    tokens: Path | None,
    insecure: bool,
    allowed_hosts: Sequence[str],
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_tls: bool,
    max_body: int,
    max_connections: int,
    as_json: bool,
) -> None:
    """Serve a store over HTTP, for any machine and language.

    This process owns the store and runs rescue, promotion, pruning and schedules; whoever connects to
    http://HOST:PORT enqueues and works. Retention, leases and intervals are read from WINDLASS_... and pyproject.toml.
    The first SIGTERM or SIGINT (Ctrl-C) lets requests finish, the second stops at once.
    """
    settings = resolve({}, {"url": url}, environ=os.environ, project=find_project(Path.cwd()))
    store = settings.value("url")
    if store is None:
        raise InvalidValue(NO_STORE)
    options = ServeOptions(
        host=bind[0],
        port=bind[1],
        tokens=tokens,
        insecure=insecure,
        allowed_hosts=allowed_hosts,
        tls_cert=tls_cert,
        tls_key=tls_key,
        behind_tls=behind_tls,
        largest_body=max_body,
        connections=max_connections,
    )
    log_format = "json" if as_json else str(settings.value("log_format"))
    Logs(log_format, str(settings.value("log_level"))).take_root()
    code = asyncio.run(_serve(str(store), settings, options))
    raise click.exceptions.Exit(code)


async def _serve(url: str, settings: Resolved, options: ServeOptions) -> int:
    given = settings.given(name for name in OF_CLIENT if name != "url")
    client = connect(url, **given, queues=settings.queue_settings)
    serving = Serving(client, ServerConfig.from_settings(settings), options)
    logger.info("the store is %s", masked(url))
    running, asked = asyncio.current_task(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if asked.is_set() and running is not None:
            running.cancel()
        asked.set()

    for number in GRACEFUL:
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop)
    try:
        await serving.serve_until(asked)
    except asyncio.CancelledError:
        logger.warning("stopped at once: what was under way may not have been answered")
        return ExitCode.INTERRUPTED
    return ExitCode.DONE
