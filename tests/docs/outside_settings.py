"""What the files on the pages say to `windlass worker`: checked by the parts that read it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from windlass.cli.worker import worker
from windlass.config import resolve
from windlass.engine.config import ServerConfig


def check_command(words: Sequence[str]) -> None:
    """Refuse a command that `windlass worker` would not understand."""
    program, command, *arguments = words
    assert program.rpartition("/")[2] == "windlass"
    assert command == "worker"
    context = worker.make_context("windlass worker", arguments)
    flags = {name: text for name, text in context.params.items() if isinstance(text, str)}
    ServerConfig.from_settings(resolve({}, flags, environ={}, project=None))


def check_environment(variables: Mapping[str, str]) -> None:
    """Refuse a variable that is no setting, or a value that it cannot have."""
    settings = resolve({}, {}, environ=variables, project=None)
    ServerConfig.from_settings(settings)
    assert settings.unknown == ()


def check_grace(given: timedelta) -> None:
    """Refuse a time to stop in which a worker at default settings may not be through."""
    assert given > ServerConfig().shutdown_timeout + timedelta(seconds=1)
