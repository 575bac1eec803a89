"""Groups of commands: they say what was probably meant, and may have one that is run when none is named."""

import difflib
from typing import Any

import click
from click.shell_completion import CompletionItem


class KnownCommands(click.Group):
    """A group that says what was probably meant by a name that no command has."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that `args` begin with."""
        name, known = args[0], self.list_commands(ctx)
        # while a shell completes what is typed, nothing is an error
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(self._no_such(ctx, name, known), ctx)
        return super().resolve_command(ctx, args)

    def _no_such(self, ctx: click.Context, name: str, known: list[str]) -> str:
        if "://" in name:
            # it is not shown: there may be a password in it
            return f"a URL is no command: name the store by --url, {self._with_url(ctx)}"
        near = difflib.get_close_matches(name, known, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        return f"no such command {name!r}: {advice}"

    def _with_url(self, ctx: click.Context) -> str:
        return f"{ctx.command_path} COMMAND --url URL"


class DefaultGroup(KnownCommands):
    """A group whose command `default` is run when none is named; options alone are meant for that one."""

    def __init__(self, *args: Any, default: str, **kwargs: Any) -> None:  # noqa: ANN401 - as click's
        """Run `default` when no command is named."""
        kwargs.setdefault("epilog", f"Without a command it takes the options of `{default}`.")
        super().__init__(*args, **kwargs)
        self.default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they were made."""
        del ctx
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the default command where none is."""
        # while a shell completes what is typed, the name of a command may still come
        none_named = not args and not ctx.resilient_parsing
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        if none_named or is_option or (args and self._names_store(args[0])):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def _with_url(self, ctx: click.Context) -> str:
        return f"{ctx.command_path} --url URL"

    def _names_store(self, word: str) -> bool:
        """Whether `word` is a URL or MODULE:APP, which no command is called, and the default command takes one."""
        takes_store = any(each.name == "store" for each in self.commands[self.default].params)
        return takes_store and ":" in word and word not in self.commands

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin so, and the options of the default one."""
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            found += self.commands[self.default].shell_complete(ctx, incomplete)
        return found
