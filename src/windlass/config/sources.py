"""What the environment and pyproject.toml say; each value is checked as it is read, and an error names its source."""

import re
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, cast

from windlass.config.settings import BY_NAME, CODE_ALONE, PER_QUEUE, PREFIX, Setting, find, nearest
from windlass.core.errors import InvalidValue
from windlass.core.names import check_name

Values: TypeAlias = Mapping[str, object]
"""Checked values by the name of their setting."""

PROJECT: Final = "pyproject.toml"
TABLE: Final = "[tool.windlass]"
OTHER_VARIABLES: Final = frozenset(f"{PREFIX}{name}" for name in ("TOKEN", "TOKENS", "DEBUG", "EXAMPLES", "FAILPOINTS"))
"""Variables of ours that are no settings: a store's token, the file of tokens, tracebacks of the commands, two of
`windlass.testing`."""
OF_TESTS: Final = (f"{PREFIX}TEST_", f"{PREFIX}CI")
"""How variables begin that say where tests find servers."""

_BY_VARIABLE: Final[Mapping[str, Setting]] = {setting.variable: setting for setting in BY_NAME.values()}
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Environment:
    """What the environment says; `unknown` has a line of advice for each variable that only looks like ours."""

    values: Values = field(default_factory=dict[str, object], repr=False)
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """What a pyproject.toml says, for all queues and for single ones."""

    values: Values = field(default_factory=dict[str, object], repr=False)
    queues: Mapping[str, Values] = field(default_factory=dict[str, Values])


def read_environment(environ: Mapping[str, str]) -> Environment:
    """Return the settings among the variables; an empty one counts as not set."""
    ours = {name: text for name, text in environ.items() if name.startswith(PREFIX) and text.strip()}
    values: dict[str, object] = {}
    for variable in sorted(ours.keys() & _BY_VARIABLE.keys()):
        setting = _BY_VARIABLE[variable]
        with named(variable):
            values[setting.name] = setting.read(ours[variable])
    others = ours.keys() - _BY_VARIABLE.keys() - OTHER_VARIABLES
    unknown = sorted(name for name in others if not name.startswith(OF_TESTS))
    return Environment(values, tuple(f"{name} is no setting: {_meant(name)}" for name in unknown))


def _meant(variable: str) -> str:
    name = variable.removeprefix(PREFIX).lower()
    if name in CODE_ALONE:
        return CODE_ALONE[name]
    near = nearest(name, BY_NAME)
    return f"did you mean {BY_NAME[near].variable}?" if near else "it is left alone"


def find_project(start: Path) -> Path | None:
    """Return the nearest pyproject.toml with a table of ours, in the folder `start` or above it.

    A nearer one that cannot be read raises `InvalidValue`: it might have been meant.
    """
    folder = start.resolve()
    for each in (folder, *folder.parents):
        path = each / PROJECT
        if _is_there(path) and _table(path) is not None:
            return path
    return None


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # in a folder that this process may not look into there is nothing for it
        return False


def read_project(path: Path) -> Project:
    """Return the settings in the table of ours in a pyproject.toml, which may be missing."""
    table = dict(_table(path) or {})
    with named(f"{PROJECT} [tool.windlass.queue]"):
        queues = _as_table(table.pop("queue", {}))
    return Project(
        _read_table(table, TABLE, BY_NAME),
        {name: _read_queue(name, settings) for name, settings in queues.items()},
    )


def _table(path: Path) -> Mapping[str, object] | None:
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool")
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read: {error}"
        raise InvalidValue(message) from error
    if not isinstance(tool, dict) or "windlass" not in tool:
        return None
    with named(f"{PROJECT} {TABLE}"):
        return _as_table(cast("Mapping[str, object]", tool)["windlass"])


def _as_table(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        message = f"it must be a table, not {type(value).__name__}"
        raise InvalidValue(message)
    return cast("Mapping[str, object]", value)


def _read_queue(name: str, settings: object) -> Values:
    header = f"[tool.windlass.queue.{name if _BARE_KEY.fullmatch(name) else repr(name)}]"
    with named(f"{PROJECT} {header}"):
        check_name(name, "queue")
        table = _as_table(settings)
        for key, value in table.items():
            if isinstance(value, dict):
                message = f'{key!r} is a table: write a queue\'s name with a dot in quotes, "{name}.{key}"'
                raise InvalidValue(message)
    return _read_table(table, header, PER_QUEUE)


def _read_table(table: Mapping[str, object], header: str, known: Mapping[str, Setting]) -> Values:
    values: dict[str, object] = {}
    for key, value in table.items():
        with named(f"{PROJECT} {header}"):
            setting = find(key, known)
        with named(f"{PROJECT} {header} {key}"):
            values[key] = setting.read(value)
    return values


@contextmanager
def named(source: str) -> Generator[None]:
    """Put `source` in front of the message of what is refused within."""
    try:
        yield
    except InvalidValue as error:
        message = f"{source}: {error}"
        raise InvalidValue(message) from None
