"""From `tasks:app` to the app: imports the module that a command line names, and says what is wrong with it."""

import difflib
import os
import re
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Final, NamedTuple, NoReturn

from windlass.app.app import App
from windlass.app.handler import Handler
from windlass.client.failure import failure_of
from windlass.core.errors import AppNotLoaded

FORM: Final = "an app is named by its module and its name there, as in tasks:app"

_IMPORTING: Final = "<frozen importlib"
_OURS: Final = str(Path(__file__).parents[1]) + os.sep


class _Place(NamedTuple):
    """Where the app is said to be; without `name` it is to be found."""

    module: str
    name: str | None


def load_app(spec: str) -> App:
    """Import the app that `spec` names: `tasks:app`, `shop.tasks:queues.app`, or `tasks` when one app is in there.

    Modules are looked for in the current folder first. Raises `AppNotLoaded`, which says what to do; when it was the
    user's own code that raised, with the traceback of that code alone.
    """
    place = _read(spec)
    _look_here_first()
    module = _imported(place.module)
    if place.name is None:
        return _only_app(module)
    return _checked(_attribute(module, place.name), f"{place.module}:{place.name}", module)


def _read(spec: str) -> _Place:
    text = spec.strip()
    module, colon, name = text.partition(":")
    if not text:
        message = f"the app has no name: {FORM}"
        raise AppNotLoaded(message)
    if "/" in module or os.sep in module or module.endswith(".py"):
        _refuse_path(text, module, name)
    if "(" in name:
        made = name.partition("(")[0]
        message = (
            f"{text!r} is a call, and an app is not made by the command line: write `app = {made}()` at the top of "
            f"{module}, and name it as {module}:app"
        )
        raise AppNotLoaded(message)
    if not _is_dotted(module) or (colon and not _is_dotted(name)):
        message = f"{text!r} cannot be read: {FORM}"
        raise AppNotLoaded(message)
    return _Place(module, name or None)


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _refuse_path(text: str, path: str, name: str) -> NoReturn:
    parts = [part for part in re.split(r"[/\\]", path.removesuffix(".py")) if part not in ("", ".")]
    module = ".".join(parts)
    if path.startswith(("/", "..")) or not _is_dotted(module):
        advice = f"go to the folder of that file, and name the app as {parts[-1] if parts else 'tasks'}:{name or 'app'}"
    else:
        advice = f"did you mean {module}:{name or 'app'}?"
    message = f"{text!r} is the path of a file, and a module is wanted: {advice}"
    raise AppNotLoaded(message)


def _look_here_first() -> None:
    here = str(Path.cwd())
    if sys.path[:1] not in ([here], [""]):
        sys.path.insert(0, here)


def _imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if not _own_frames(error.__traceback__):
            _refuse_missing(name, error)
        _refuse_broken(name, error, f"imports {error.name!r}, which is not there: install it, or mend its name")
    except BaseException as error:  # noqa: BLE001 - a module may raise anything, also SystemExit
        _refuse_broken(name, error, f"raised {_said(error)} when it was imported")


def _refuse_missing(name: str, error: ModuleNotFoundError) -> NoReturn:
    missing = error.name or name
    if "is not a package" in str(error):
        advice = f"{missing.rpartition('.')[0]!r} is a single file, and has no modules in it"
    elif near := difflib.get_close_matches(missing, _modules_here(), n=1):
        advice = f"did you mean {near[0]!r}?"
    else:
        advice = "go to the folder that it is in, or install its package into this environment"
    message = f"there is no module {missing!r} in {Path.cwd()} nor among what is installed: {advice}"
    raise AppNotLoaded(message) from error


def _modules_here() -> list[str]:
    here = Path.cwd()
    files = [path.stem for path in here.glob("*.py")]
    return files + [path.parent.name for path in here.glob("*/__init__.py")]


def _refuse_broken(name: str, error: BaseException, problem: str) -> NoReturn:
    frames = _own_frames(error.__traceback__)
    where = ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f" ({_shown(error.filename)}, line {error.lineno})"
    elif frames:
        where = f" ({_shown(frames[-1].filename)}, line {frames[-1].lineno})"
    message = f"the module {name!r} {problem}{where}"
    raise AppNotLoaded(message, _own_traceback(error)) from error


def _own_frames(found: TracebackType | None) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(found) if not _is_machinery(frame.filename)]


def _is_machinery(filename: str) -> bool:
    return filename.startswith((_IMPORTING, _OURS)) or filename == import_module.__code__.co_filename


def _own_traceback(error: BaseException) -> str:
    whole = traceback.TracebackException.from_exception(error, compact=True)
    left: list[traceback.TracebackException | None] = [whole]
    while left:
        told = left.pop()
        if told is not None:
            own = [frame for frame in told.stack if not _is_machinery(frame.filename)]
            told.stack = traceback.StackSummary.from_list(own)
            left += [told.__cause__, told.__context__]
    return "".join(whole.format())


def _said(error: BaseException) -> str:
    # one line, and also of an error that cannot describe itself
    # of a mistake in the writing the place is told beside it
    told = error.msg if isinstance(error, SyntaxError) else failure_of(error).message
    text = " ".join(told.split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _shown(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


def _apps_in(module: ModuleType) -> Mapping[str, App]:
    return {name: value for name, value in vars(module).items() if isinstance(value, App)}


def _only_app(module: ModuleType) -> App:
    apps = _apps_in(module)
    if "app" in apps or len({id(app) for app in apps.values()}) == 1:
        return apps.get("app") or next(iter(apps.values()))
    if apps:
        choice = " or ".join(f"{module.__name__}:{name}" for name in sorted(apps))
        message = f"there are several apps in {module.__name__!r}: name one, {choice}"
        raise AppNotLoaded(message)
    message = f"there is no app in {_described(module)}: write `app = windlass.App(...)` there"
    raise AppNotLoaded(message)


def _attribute(module: ModuleType, name: str) -> object:
    found: object = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            _refuse_attribute(module, name, part, found, error)
    return found


def _refuse_attribute(module: ModuleType, name: str, part: str, found: object, error: AttributeError) -> NoReturn:
    apps = sorted(_apps_in(module))
    near = difflib.get_close_matches(part, apps if found is module and apps else dir(found), n=1)
    if near:
        advice = f"did you mean {module.__name__}:{name.replace(part, near[0])}?"
    elif apps:
        advice = f"the apps in there are {', '.join(f'{module.__name__}:{each}' for each in apps)}"
    else:
        advice = "there is no app in there"
    message = f"there is no {part!r} in {_described(module)}: {advice}"
    raise AppNotLoaded(message) from error


def _described(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    text = f"{module.__name__!r} ({_shown(file)})" if file else repr(module.__name__)
    own = Path.cwd() / f"{module.__name__}.py"
    if file and own.exists() and not own.samefile(file):
        # a name of the standard library that was taken before
        text += f", which is not {own.name} of this folder: give that file another name"
    return text


def _checked(found: object, shown: str, module: ModuleType) -> App:
    if isinstance(found, App):
        return found
    kind, apps = type(found).__name__, sorted(_apps_in(module))
    if found is App:
        advice = "make one with App(...) and name that"
    elif isinstance(found, Handler):
        advice = "that is a handler; name the app that it belongs to"
    elif isinstance(found, ModuleType):
        advice = f"that is a module; write {found.__name__}:app"
    elif callable(found):
        advice = f"if it makes one, write `app = {shown.rpartition(':')[2]}()` at the top of the module and name that"
    else:
        advice = "name one"
    if apps:
        advice += f" ({' or '.join(f'{module.__name__}:{each}' for each in apps)})"
    message = f"{shown} is no App but of type {kind}: {advice}"
    raise AppNotLoaded(message)
