"""`windlass top`: a live view of queues, jobs, servers and what died."""

import asyncio
import os
import sys
from datetime import timedelta
from typing import Final

import click

from windlass.cli.audited import as_option
from windlass.cli.errors import needs_extra
from windlass.cli.options import output_options, read_duration, store_argument, store_options
from windlass.cli.output import print_json
from windlass.cli.reach import Choice, dead_after, reached, settings_of, shown_url
from windlass.cli.top.frame import Looker
from windlass.cli.top.plain import document, print_frame
from windlass.cli.top.wanted import read_wanted

SHORTEST: Final = timedelta(seconds=0.1)


@click.command()
@click.option(
    "--interval", callback=read_duration, default="1s", show_default=True, metavar="TIME", help="How often to look."
)
@click.option("--filter", "wanted", default="", metavar="TEXT", help="Which jobs: queue:email state:dead words.")
@click.option("--once", is_flag=True, help="Print one frame as text, and leave.")
@as_option
@store_argument
@store_options
@output_options
def top(
    *, interval: timedelta, wanted: str, once: bool, actor: str, app: str | None, url: str | None, as_json: bool
) -> None:
    """Watch queues, jobs and servers live, and steer them.

    The keys are shown by `?`. Where the output is no terminal, and with --once or --json, one frame is printed.
    """
    if interval < SHORTEST:
        raise click.BadParameter(f"it is {SHORTEST.total_seconds()} s at least", param_hint="--interval")
    read_wanted(wanted)
    live = not (once or as_json) and _on_terminal()
    if live:
        asyncio.run(_watch(Choice(app, url), interval, wanted, actor))
    else:
        asyncio.run(_print(Choice(app, url), wanted, as_json=as_json))


def _on_terminal() -> bool:
    # keys come from the first, and the screen is drawn by the last
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream.isatty() for stream in streams) and os.environ.get("TERM") != "dumb"


async def _print(choice: Choice, wanted: str, *, as_json: bool) -> None:
    async with reached(choice) as found:
        looker = Looker(found.client)
        frame = await looker.look(read_wanted(wanted))
        gone = dead_after(settings_of(choice, found))
        rates = looker.rates(frame)
    if as_json:
        print_json(document(frame, rates, dead_after=gone))
    else:
        print_frame(frame, rates, dead_after=gone, wanted=wanted)


async def _watch(choice: Choice, interval: timedelta, wanted: str, actor: str) -> None:
    with needs_extra("windlass top", "top"):
        # it takes a third of a second to load
        from windlass.cli.top.screen import Terms, Top  # noqa: PLC0415
    async with reached(choice) as found:
        settings = settings_of(choice, found)
        terms = Terms(
            where=shown_url(settings),
            actor=actor,
            interval=interval.total_seconds(),
            dead_after=dead_after(settings),
            changes=not found.client.store.features.one_owner,
            wanted=wanted,
        )
        view = Top(found.client, terms)
        await view.run_async()
        if view.error is not None:
            raise view.error
