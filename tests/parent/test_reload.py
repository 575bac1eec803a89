import os
import signal
from pathlib import Path

import pytest

from tests.parent.given import Running
from windlass.parent.reload import SourceWatch

APP = "import windlass\napp = windlass.App('sqlite:///jobs.db')\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("tasks.py", "shop/orders.py", "pyproject.toml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("before")
    return tmp_path


def write(path: Path, text: str = "after") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("name", ["tasks.py", "shop/orders.py", "pyproject.toml", "shop/new.py", "new/deep/er.py"])
def test_a_change_of_the_source_is_seen_once(folder: Path, name: str) -> None:
    watch = SourceWatch(folder)

    write(folder / name)

    assert watch.changed() == [name]
    assert watch.changed() == []


def test_a_change_that_keeps_the_length_is_seen_by_its_time(folder: Path) -> None:
    watch = SourceWatch(folder)

    os.utime(folder / "tasks.py", (1, 1))

    assert watch.changed() == ["tasks.py"]


def test_a_deleted_file_is_seen(folder: Path) -> None:
    watch = SourceWatch(folder)

    (folder / "shop" / "orders.py").unlink()

    assert watch.changed() == ["shop/orders.py"]


@pytest.mark.parametrize(
    "name",
    ["notes.txt", ".hidden.py", ".git/hook.py", "__pycache__/a.py", "node_modules/a.py", "venv/lib/a.py", "jobs.db"],
)
def test_what_is_no_source_is_left_out(folder: Path, name: str) -> None:
    write(folder / "venv" / "pyvenv.cfg")
    watch = SourceWatch(folder)

    write(folder / name)

    assert watch.changed() == []


def test_a_loop_of_links_is_no_trap(folder: Path) -> None:
    (folder / "shop" / "again").symlink_to(folder)

    watch = SourceWatch(folder)
    write(folder / "tasks.py")

    assert watch.changed() == ["tasks.py"]


def test_children_are_started_anew_when_the_source_changes(tmp_path: Path) -> None:
    source = tmp_path / "shop.py"
    source.write_text(APP)
    with Running(tmp_path, "--reload", app="shop:app") as running:
        running.says("ready: ")
        [first] = running.children()

        source.write_text(APP + "\n@app.job\nasync def added() -> None: ...\n")
        running.says("kinds added")
        running.says("ready: ", 2)

        assert first not in running.children()
        assert "shop.py changed" in running.log()
        running.signal(signal.SIGTERM)
        assert running.ends() == 0


def test_an_app_that_cannot_be_loaded_waits_for_the_next_change(tmp_path: Path) -> None:
    source = tmp_path / "shop.py"
    source.write_text(APP)
    with Running(tmp_path, "--reload", app="shop:app") as running:
        running.says("ready: ")

        source.write_text("1 / 0\n")
        running.says("ZeroDivisionError")
        running.says("waiting for a change")
        source.write_text(APP + "# mended\n")
        running.says("ready: ", 2)

        running.signal(signal.SIGTERM)
        assert running.ends() == 0
