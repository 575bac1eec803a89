"""A group of commands whose modules are loaded when one of them is called."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from windlass.cli.known_commands import KnownCommands


class Place(NamedTuple):
    """Where a command is, and what the list of commands says of it."""

    module: str
    summary: str
    section: str
    """The heading under which the command is listed."""


class LazyGroup(KnownCommands):
    """Commands by name; the module of each has an attribute of that name."""

    def __init__(self, *args: Any, places: Mapping[str, Place], **kwargs: Any) -> None:  # noqa: ANN401 - as click's
        """Know where the commands are."""
        super().__init__(*args, **kwargs)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they are shown."""
        del ctx
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command."""
        del ctx
        place = self.places.get(cmd_name)
        if place is None:
            return None
        found: object = getattr(import_module(place.module), cmd_name)
        assert isinstance(found, click.Command)  # noqa: S101 - a mistake of ours, found by any test of the command
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin so, without loading any."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=place.summary)
            for name, place in self.places.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section, without loading any."""
        del ctx
        width = max(map(len, self.places))
        for section in dict.fromkeys(place.section for place in self.places.values()):
            with formatter.section(section):
                listed = [(name, each.summary) for name, each in self.places.items() if each.section == section]
                # the summaries of all sections begin in one column
                formatter.write_dl([(name.ljust(width), summary) for name, summary in listed])
