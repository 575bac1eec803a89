"""`windlass dashboard`: what is in a store and what becomes of it, in a browser."""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import click

from windlass.cli.door_options import door_options
from windlass.cli.errors import needs_extra
from windlass.cli.log_lines import leave_to_log
from windlass.cli.options import debug_option, store_argument, store_options
from windlass.cli.reach import Choice, outside, reached, settings_of, shown_url
from windlass.cli.stop_asked import stop_asked
from windlass.core.errors import InvalidValue
from windlass.event_loop import favour_loop
from windlass.exit_codes import ExitCode
from windlass.parent.log_format import Logs

if TYPE_CHECKING:
    from windlass.http.front_door import DoorOptions

logger = logging.getLogger("windlass")

DEFAULT_BIND: Final = "127.0.0.1:8701"
NO_STORE: Final = (
    "no store is named: windlass dashboard sqlite:///jobs.db, or set WINDLASS_URL, or write url or app in "
    "[tool.windlass] of pyproject.toml"
)


@click.command()
@store_argument
@store_options
@door_options(DEFAULT_BIND)
@click.option("--json", "as_json", is_flag=True, help="Write the log as JSON, one object a line.")
@debug_option
def dashboard(*, app: str | None, url: str | None, door: "DoorOptions", as_json: bool) -> None:
    """Watch and steer a store in a browser.

    It looks at any store that is there already, beside whoever works on it, and runs nothing itself. On the loopback it
    needs no token; an address that other machines reach does, and browsers then log in with theirs. A store that one
    process owns is only looked at. The first Ctrl-C or SIGTERM stops it, and ends every page's stream.
    """
    choice = Choice(app, url)
    settings = outside(choice)
    if settings.value("url") is None and settings.value("app") is None:
        raise InvalidValue(NO_STORE)
    log_format = "json" if as_json else str(settings.value("log_format"))
    leave_to_log()
    Logs(log_format, str(settings.value("log_level"))).take_root()
    favour_loop()
    asyncio.run(_show(choice, door))
    raise click.exceptions.Exit(ExitCode.DONE)


async def _show(choice: Choice, door: "DoorOptions") -> None:
    with needs_extra("windlass dashboard", "web"):
        from windlass.http.dashboard.showing import Showing  # noqa: PLC0415
    with stop_asked() as asked:
        async with reached(choice) as found:
            store = shown_url(settings_of(choice, found))
            async with Showing(found.client, door, store=store) as showing:
                logger.info("the store is %s", store)
                logger.info("the dashboard is at %s", showing.url)
                await asked.wait()
                logger.info("stopping")
