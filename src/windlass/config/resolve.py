"""Every setting with the value that holds and where it came from."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from windlass.config.settings import BY_NAME, PER_QUEUE, SETTINGS, Setting, find
from windlass.config.sources import PROJECT, Environment, Project, Values, named, read_environment, read_project
from windlass.core.names import check_name
from windlass.core.settings import UNSET, QueueSettings

logger = logging.getLogger("windlass")

FLAG: Final = "flag"
CODE: Final = "code"
BY_DEFAULT: Final = "default"
NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
NO_QUEUES: Final[Mapping[str, QueueSettings]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Held:
    """A value and where it came from."""

    value: object = field(repr=False)
    source: str


class Shown(NamedTuple):
    """One line for people: no secret is in it. The name of a queue's own setting is `queue.email.lease`."""

    name: str
    value: str
    source: str


class Resolved:
    """The settings that hold. Iterating gives a line for each, as `windlass config` prints it."""

    def __init__(
        self,
        held: Mapping[str, Held],
        queues: Mapping[str, QueueSettings],
        from_file: Mapping[str, Values],
        *,
        project: Path | None,
        unknown: tuple[str, ...],
    ) -> None:
        """Hold what `resolve` found."""
        self._held = held
        self._from_file = from_file
        self.queue_settings = queues
        self.project = project
        self.unknown = unknown

    def value(self, name: str) -> object:
        """Return what holds for the setting `name`."""
        return self._held[find(name).name].value

    def source(self, name: str) -> str:
        """Return where it came from: `flag`, the environment variable, `pyproject.toml`, `code` or `default`."""
        return self._held[find(name).name].source

    def given(self, names: Iterable[str] = BY_NAME) -> dict[str, Any]:
        """Return those of `names` that somebody gave a value, with it: keywords for a call that knows the defaults."""
        return {name: self.value(name) for name in names if self.source(name) != BY_DEFAULT}

    def __iter__(self) -> Iterator[Shown]:
        for setting in SETTINGS:
            held = self._held[setting.name]
            yield Shown(setting.name, setting.show(held.value), held.source)
        for queue, settings in self.queue_settings.items():
            yield from self._shown_of(queue, settings)

    def __repr__(self) -> str:
        return f"Resolved({', '.join(f'{name}={value} ({source})' for name, value, source in self)})"

    def _shown_of(self, queue: str, settings: QueueSettings) -> Iterator[Shown]:
        from_file = self._from_file.get(queue, NOTHING)
        for name, setting in PER_QUEUE.items():
            if (value := getattr(settings, name)) is not UNSET:
                source = PROJECT if name in from_file else CODE
                yield Shown(f"queue.{queue}.{name}", setting.show(value), source)


def resolve(
    code: Mapping[str, object],
    flags: Mapping[str, object] = NOTHING,
    *,
    environ: Mapping[str, str],
    project: Path | None,
    queues: Mapping[str, QueueSettings] = NO_QUEUES,
) -> Resolved:
    """Merge flags over environment over `project`, a pyproject.toml, over code over defaults.

    In `code` an `UNSET` counts as left out, in `flags` a None. `queues` are the settings that code gives single queues;
    the file goes over them too, setting by setting. What cannot be read raises `InvalidValue` naming its source. A
    variable that only looks like a setting is logged as a warning.
    """
    environment = read_environment(environ)
    file = Project() if project is None else read_project(project)
    for line in environment.unknown:
        _warn_once(line)
    held = _defaults() | _from_code(code) | _from_file(file) | _from_environment(environment) | _from_flags(flags)
    return Resolved(held, _merged(queues, file.queues), file.queues, project=project, unknown=environment.unknown)


@cache
def _warn_once(line: str) -> None:
    """Say it once in a process, however often the settings are read."""
    logger.warning("%s", line)


def _defaults() -> dict[str, Held]:
    return {setting.name: Held(setting.default, BY_DEFAULT) for setting in SETTINGS}


def _from_code(code: Mapping[str, object]) -> dict[str, Held]:
    settings = ((find(name), value) for name, value in code.items())
    return {each.name: Held(each.check(value), CODE) for each, value in settings if not _left_out(each, value)}


def _left_out(setting: Setting, value: object) -> bool:
    return value is UNSET or (value is None and setting.default is None)


def _from_file(file: Project) -> dict[str, Held]:
    return {name: Held(value, PROJECT) for name, value in file.values.items()}


def _from_environment(environment: Environment) -> dict[str, Held]:
    return {name: Held(value, BY_NAME[name].variable) for name, value in environment.values.items()}


def _from_flags(flags: Mapping[str, object]) -> dict[str, Held]:
    held: dict[str, Held] = {}
    for name, value in flags.items():
        setting = find(name)
        if value is not None:
            with named(setting.flag):
                held[name] = Held(setting.read(value), FLAG)
    return held


def _merged(code: Mapping[str, QueueSettings], file: Mapping[str, Values]) -> dict[str, QueueSettings]:
    names = [*code, *(name for name in file if name not in code)]
    return {
        check_name(name, "queue"): _over(code.get(name, QueueSettings()), file.get(name, NOTHING)) for name in names
    }


def _over(code: QueueSettings, file: Values) -> QueueSettings:
    given: dict[str, Any] = {each.name: getattr(code, each.name) for each in fields(code)}
    for name, setting in PER_QUEUE.items():
        if given[name] is not UNSET:
            given[name] = setting.check(given[name])
    given.update(file)
    return QueueSettings(**given)
