"""`windlass completion`: lets a shell complete commands, options, queues and kinds."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from windlass.cli.options import output_options
from windlass.cli.output import note, print_json
from windlass.cli.program import COMPLETING

WHERE: Final = {
    "bash": 'write it to a file and source that from ~/.bashrc, or add: eval "$(windlass completion bash)"',
    "zsh": 'write it to a folder of your $fpath as _windlass, or add to ~/.zshrc: eval "$(windlass completion zsh)"',
    "fish": "write it to ~/.config/fish/completions/windlass.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(WHERE)))
@output_options
def completion(*, shell: str, as_json: bool) -> None:
    """Print what lets a shell complete `windlass`.

    Commands, options and states, and the names of queues and kinds where a store is named by --url, WINDLASS_URL or
    pyproject.toml and answers within 0.3 s. Where to write it is said on stderr.

    \b
        windlass completion fish
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 - click knows these three
    # completion asks the program itself, which is not needed for the script
    script = made(click.Command("windlass"), {}, "windlass", COMPLETING).source()
    # click's script for fish ends what a command says of itself at its first comma
    script = script.replace('string split ","', 'string split --max 1 ","')
    if as_json:
        print_json({"shell": shell, "script": script, "where": WHERE[shell]})
        return
    click.echo(script)
    note(f"{shell}: {WHERE[shell]}")
