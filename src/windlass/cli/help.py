"""`windlass help`: the help of a command by its name."""

from collections.abc import Sequence

import click


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help(ctx: click.Context, words: Sequence[str]) -> None:  # noqa: A001 - the name of the command
    """Show the help of a command.

    `windlass help jobs retry` shows what `windlass jobs retry --help` does.
    """
    shown = ctx.find_root()
    for word in words:
        if not isinstance(shown.command, click.Group):
            message = f"{shown.command_path} has no commands below it: leave out {word!r}"
            raise click.UsageError(message, ctx)
        name, command, _ = shown.command.resolve_command(shown, [word])
        if command is not None:
            shown = click.Context(command, parent=shown, info_name=name)
    click.echo(shown.get_help())
