"""`windlass serve`: any store over HTTP, for other processes, machines and languages."""

import asyncio
import logging
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from windlass.app.sources import OF_CLIENT
from windlass.cli.door_options import door_options
from windlass.cli.errors import needs_extra
from windlass.cli.log_lines import leave_to_log
from windlass.cli.options import debug_option, store_argument, store_options
from windlass.cli.reach import Choice, chosen_app, outside
from windlass.config import Resolved
from windlass.config.masked import masked
from windlass.connect import connect
from windlass.core.errors import InvalidValue
from windlass.engine.config import ServerConfig
from windlass.event_loop import favour_loop, runner_on
from windlass.exit_codes import ExitCode
from windlass.parent.log_format import Logs
from windlass.parent.signals import GRACEFUL

if TYPE_CHECKING:
    from windlass.http.front_door import DoorOptions

logger = logging.getLogger("windlass")

DEFAULT_BIND: Final = "127.0.0.1:8700"
NO_STORE: Final = (
    "no store is named: windlass serve sqlite:///jobs.db, or set WINDLASS_URL, or write url in [tool.windlass] of "
    "pyproject.toml"
)


@click.command()
@store_argument
@store_options
@door_options(DEFAULT_BIND)
@click.option(
    "--max-body",
    type=click.IntRange(min=1_024),
    default=32 * 1024 * 1024,
    show_default=True,
    metavar="BYTES",
    help="The largest request that is read.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the log as JSON, one object a line.")
@debug_option
def serve(
    *,
    app: str | None,
    url: str | None,
    door: "DoorOptions",
    max_body: int,
    as_json: bool,
) -> None:
    """Serve a store over HTTP, for any machine and language.

    This process owns the store and runs rescue, promotion, pruning and schedules; whoever connects to
    http://HOST:PORT enqueues and works. Retention, leases and intervals are read from WINDLASS_... and pyproject.toml.
    The first SIGTERM or SIGINT (Ctrl-C) lets requests finish, the second stops at once.
    """
    choice = Choice(app, url)
    settings = outside(choice)
    if app is not None:
        loaded = chosen_app(choice, settings)
        settings = settings if loaded is None else loaded.config
    store = settings.value("url")
    if store is None:
        raise InvalidValue(NO_STORE)
    options = replace(door, largest_body=max_body)
    log_format = "json" if as_json else str(settings.value("log_format"))
    leave_to_log()
    Logs(log_format, str(settings.value("log_level"))).take_root()
    config = ServerConfig.from_settings(settings)
    favour_loop()
    with runner_on(config.event_loop) as runner:
        code = runner.run(_serve(str(store), settings, config, options))
    raise click.exceptions.Exit(code)


async def _serve(url: str, settings: Resolved, config: ServerConfig, options: "DoorOptions") -> int:
    with needs_extra("windlass serve", "web"):
        from windlass.http.serving import Serving  # noqa: PLC0415
    given = settings.given(name for name in OF_CLIENT if name != "url")
    client = connect(url, **given, queues=settings.queue_settings)
    serving = Serving(client, config, options)
    logger.info("the store is %s", masked(url))
    running, asked = asyncio.current_task(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if asked.is_set() and running is not None:
            running.cancel()
        asked.set()

    heard = [each for each in GRACEFUL if each is not signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, stop)
    try:
        await serving.serve_until(asked)
    except asyncio.CancelledError:
        logger.warning("stopped at once: what was under way may not have been answered")
        return ExitCode.INTERRUPTED
    finally:
        # not every event loop does this when it is closed
        for number in heard:
            loop.remove_signal_handler(number)
    return ExitCode.DONE
