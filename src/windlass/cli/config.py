"""`windlass config`: every setting, its value, and where it came from."""

import click

from windlass.cli.options import output_options, store_argument, store_options
from windlass.cli.output import FAINT, STRONG, Cell, note, print_json, print_table
from windlass.cli.reach import Choice, chosen_app, outside
from windlass.config import Resolved
from windlass.config.resolve import BY_DEFAULT


@click.command()
@store_argument
@store_options
@output_options
def config(*, app: str | None, url: str | None, as_json: bool) -> None:
    """Show every setting and where it came from.

    With an app also what its code says; passwords are hidden. Flags go over the environment, over pyproject.toml, over
    the code, over the defaults.
    """
    choice = Choice(app, url)
    settings = outside(choice)
    loaded = chosen_app(choice, settings)
    held = settings if loaded is None else loaded.config
    if as_json:
        print_json(_document(held))
        return
    rows: list[list[Cell | str]] = [
        [Cell(name, "" if source == BY_DEFAULT else STRONG), value, Cell(source, FAINT if source == BY_DEFAULT else "")]
        for name, value, source in held
    ]
    print_table(["SETTING", "VALUE", "FROM"], rows, folds=["VALUE"])
    note(f"pyproject.toml: {held.project or 'none with [tool.windlass] here or above'}")


def _document(held: Resolved) -> object:
    return {
        "settings": {name: {"value": value, "source": source} for name, value, source in held},
        "project": None if held.project is None else str(held.project),
        "unknown": list(held.unknown),
    }
