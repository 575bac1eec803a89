"""`windlass demo`: jobs that survive processes that are killed, to watch."""

import os

import click

from windlass.cli.options import output_options
from windlass.cli.output import print_json
from windlass.core.errors import InvalidValue
from windlass.demo.run import LONGEST, REMOVABLE, SHORTEST, Ending, run
from windlass.demo.view import PlainView, View, person_is_watching


@click.command()
@click.option(
    "--seconds", type=float, default=60.0, show_default=True, metavar="N", help="About how long, from 10 to 3,600."
)
@click.option("--without", "removed", metavar="SAFEGUARD", help="Take a safeguard out and see what breaks: fence.")
@click.option("--stay", is_flag=True, help="Keep the dashboard up after the end, until Ctrl-C.")
@output_options
def demo(*, seconds: float, removed: str | None, stay: bool, as_json: bool) -> None:
    """Watch a shop's jobs survive processes that are killed.

    It starts `windlass worker` on a SQLite file of its own, kills, poisons and pauses its processes, and compares what
    the jobs did with what the store says. Meanwhile a browser can watch it on the loopback (the extra `web`). Files and
    processes are gone in the end.

    Ends with 0 when every promise held, with 1 when one did not, with 2 when the run shows nothing.
    """
    _check(seconds, removed)
    view = _view(as_json=as_json)
    ended = run(seconds, removed, view, stay=stay)
    if as_json:
        print_json(_document(ended))
    raise click.exceptions.Exit(ended.code)


def _check(seconds: float, removed: str | None) -> None:
    if not SHORTEST <= seconds <= LONGEST:
        message = f"--seconds {seconds:g}: the story needs from {SHORTEST:g} seconds to an hour"
        raise InvalidValue(message)
    if removed not in (None, *REMOVABLE):
        message = f"--without {removed} is not known: this story can do without {' or '.join(REMOVABLE)}"
        raise InvalidValue(message)
    if os.name != "posix":
        message = "the demo pauses processes by signals, which this system does not have: run it on Linux or macOS"
        raise InvalidValue(message)


def _view(*, as_json: bool) -> View:
    if as_json:
        return View()
    if not person_is_watching():
        return PlainView()
    from windlass.demo.live_view import LiveView  # noqa: PLC0415 - a tenth of a second to load

    return LiveView()


def _document(ended: Ending) -> dict[str, object]:
    return {
        "held": ended.code == 0,
        "said": ended.text,
        "facts": [fact._asdict() for fact in ended.facts],
    }
