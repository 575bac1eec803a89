import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass import App, AppNotLoaded
from windlass.app.load import load_app

TASKS = """
import windlass

app = windlass.App("memory://", name="first")
other = windlass.App("memory://", name="second")


@app.job
def work() -> None: ...


def make_app():
    return windlass.App("memory://")


class Inside:
    app = windlass.App("memory://", name="inside")


plain = 3
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("tasks.py").write_text(TASKS)
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def refused(spec: str) -> AppNotLoaded:
    with pytest.raises(AppNotLoaded) as caught:
        load_app(spec)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    "spec,name",
    [
        ("tasks:app", "first"),
        ("tasks:other", "second"),
        ("tasks", "first"),
        (" tasks:app\n", "first"),
        ("tasks:Inside.app", "inside"),
    ],
)
def test_an_app_is_found_by_its_module_and_its_name(spec: str, name: str) -> None:
    assert load_app(spec).name == name


def test_the_only_app_of_a_module_needs_no_name() -> None:
    Path("lone.py").write_text("import windlass\nqueue = also = windlass.App('memory://', name='lone')\n")

    assert load_app("lone").name == "lone"


def test_an_app_in_a_package_is_found() -> None:
    Path("shop").mkdir()
    Path("shop/__init__.py").touch()
    Path("shop/tasks.py").write_text(TASKS)

    assert load_app("shop.tasks:app").name == "first"


def test_a_class_of_the_users_own_is_an_app() -> None:
    Path("own.py").write_text("import windlass\nclass Mine(windlass.App): ...\napp = Mine('memory://')\n")

    assert isinstance(load_app("own:app"), App)


def test_the_current_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tasks.py").write_text(TASKS.replace("first", "elsewhere"))
    monkeypatch.setattr(sys, "path", [str(elsewhere), *sys.path])

    assert load_app("tasks:app").name == "first"


@pytest.mark.parametrize(
    "spec,said",
    [
        ("", "the app has no name"),
        ("  ", "the app has no name"),
        ("tasks.py:app", "did you mean tasks:app?"),
        ("tasks.py", "did you mean tasks:app?"),
        ("./shop/tasks.py:queue", "did you mean shop.tasks:queue?"),
        ("../tasks.py:app", "go to the folder of that file, and name the app as tasks:app"),
        ("/tmp/tasks.py", "go to the folder of that file, and name the app as tasks:app"),  # noqa: S108 - not opened
        ("my-tasks.py:app", "go to the folder of that file"),
        ("tasks:make_app()", "write `app = make_app()` at the top of tasks"),
        ("tasks:app:more", "cannot be read"),
        ("tasks:", "cannot be read"),
        (":app", "cannot be read"),
        (".tasks:app", "cannot be read"),
        ("tasks:app.", "cannot be read"),
        ("my-tasks:app", "cannot be read"),
        ("tasks app", "cannot be read"),
        ("tasks:__import__('os')", "is a call"),
        ("taks:app", "did you mean 'tasks'?"),
        ("nowhere:app", "there is no module 'nowhere'"),
        ("nowhere.at.all:app", "there is no module 'nowhere'"),
        ("tasks.deep:app", "'tasks' is a single file, and has no modules in it"),
        ("tasks:othr", "did you mean tasks:other?"),
        ("tasks:zzz", "the apps in there are tasks:app, tasks:other"),
        ("tasks:Inside.ap", "did you mean tasks:Inside.app?"),
        ("tasks:plain", "tasks:plain is no App but of type int"),
        ("tasks:make_app", "write `app = make_app()` at the top of the module"),
        ("tasks:work", "that is a handler; name the app that it belongs to"),
        ("tasks:windlass", "that is a module"),
        ("tasks:windlass.App", "make one with App(...)"),
    ],
)
def test_what_names_no_app_is_refused_with_what_to_do(spec: str, said: str) -> None:
    assert said in str(refused(spec))


def test_a_module_without_an_app_says_so() -> None:
    Path("empty.py").touch()

    assert "there is no app in 'empty' (empty.py): write `app = windlass.App(...)` there" in str(refused("empty"))
    assert "there is no 'app' in 'empty' (empty.py): there is no app in there" in str(refused("empty:app"))


def test_of_several_apps_one_has_to_be_named() -> None:
    Path("two.py").write_text("import windlass\na = windlass.App('memory://')\nb = windlass.App('memory://')\n")

    assert "name one, two:a or two:b" in str(refused("two"))


def test_a_name_that_a_loaded_module_has_is_explained() -> None:
    Path("queue.py").write_text(TASKS)

    assert "which is not queue.py of this folder: give that file another name" in str(refused("queue:app"))


def test_a_module_that_imports_a_missing_one_is_named_with_its_line() -> None:
    Path("broken.py").write_text("import os\n\nimport nothing_like_it\n")

    error = refused("broken:app")

    assert "'broken' imports 'nothing_like_it', which is not there" in str(error)
    assert "(broken.py, line 3)" in str(error)


def test_a_module_that_raises_is_told_with_the_traceback_of_its_own_code_alone() -> None:
    Path("inner.py").write_text("def fail():\n    1 / 0\n\nfail()\n")
    Path("broken.py").write_text("import inner\n")

    error = refused("broken:app")

    assert "'broken' raised ZeroDivisionError: division by zero when it was imported (inner.py, line 2)" in str(error)
    assert error.traceback is not None
    assert 'broken.py", line 1' in error.traceback
    assert 'inner.py", line 4' in error.traceback
    assert "importlib" not in error.traceback
    assert os.path.join("app", "load.py") not in error.traceback  # noqa: PTH118 - a part of a path


def test_a_wrong_setting_in_the_module_is_shown_where_it_stands() -> None:
    Path("broken.py").write_text("import windlass\n\napp = windlass.App('memory://', max_attempts=0)\n")

    error = refused("broken:app")

    assert "max_attempts must be from 1" in str(error)
    assert "(broken.py, line 3)" in str(error)


@pytest.mark.parametrize(
    "source,said",
    [
        ("def x(:\n", "raised SyntaxError: invalid syntax when it was imported (broken.py, line 1)"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("raise BaseException\n", "raised BaseException when"),
        ("from tasks import nothing\n", "ImportError"),
        (
            "class E(Exception):\n    def __str__(self):\n        1 / 0\nraise E\n",
            "raised E: (its text cannot be shown",
        ),
        ("class E(Exception):\n    def __str__(self):\n        return 'a\\nb'\nraise E\n", "raised E: a b when"),
    ],
)
def test_whatever_a_module_raises_is_one_error(source: str, said: str) -> None:
    Path("broken.py").write_text(source)

    assert said in str(refused("broken:app"))


def test_an_interrupt_while_importing_is_no_error_of_the_module() -> None:
    Path("slow.py").write_text("raise KeyboardInterrupt\n")

    with pytest.raises(KeyboardInterrupt):
        load_app("slow:app")
