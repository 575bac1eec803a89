"""The two wheels that are built of this tree: `windlass`, and `windlass-conformance` beside it."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.docs.pages import write_files
from tests.docs.test_own_store import MY_STORE, PAGE
from windlass.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
CONFORMANCE = ROOT / "packaging" / "windlass-conformance"
SUITE = "windlass/testing/conformance"
TEST_OF_A_USER = """
import windlass

app = windlass.App()


@app.job
async def greet(name: str) -> str:
    return f"hello {name}"


async def test_a_job_runs(windlass_app) -> None:
    job = await greet.enqueue("Ada")
    await windlass_app.drain()
    assert await job.result() == "hello Ada"
"""


class Environment:
    """A virtual environment with the packages of the tests, and with no Windlass but what is installed there."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True)
        self.python = folder / "bin" / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self._packages = folder / "lib" / version / "site-packages"
        # a folder that a .pth file names comes later, and the .pth files in it, with the sources, are not read
        (self._packages / "packages_of_the_tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n")

    def install(self, wheel: Path) -> None:
        with ZipFile(wheel) as files:
            assert not [name for name in files.namelist() if (self._packages / name).exists()]
            files.extractall(self._packages)

    def run(self, folder: Path, *arguments: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        done = subprocess.run(
            [str(self.python), *arguments],
            cwd=folder,
            env=environment | {"WINDLASS_EXAMPLES": "2", "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def build(project: Path, into: Path) -> Path:
    before = set(into.glob("*.whl"))
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    [wheel] = set(into.glob("*.whl")) - before
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("windlass"))


@pytest.fixture(scope="module")
def wheel_of_conformance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(CONFORMANCE, tmp_path_factory.mktemp("conformance"))


def code_in(wheel: Path) -> set[str]:
    with ZipFile(wheel) as files:
        return {name for name in files.namelist() if ".dist-info/" not in name}


def test_each_file_of_the_package_is_in_one_of_the_wheels(wheel: Path, wheel_of_conformance: Path) -> None:
    package, source = ROOT / "src" / "windlass", ROOT / "src"
    tree = {str(path.relative_to(source)) for path in package.rglob("*") if path.is_file()}
    tree = {name for name in tree if "__pycache__" not in name}
    suite = {name for name in tree if name.startswith(f"{SUITE}/")}

    assert f"{SUITE}/__init__.py" in suite
    assert code_in(wheel) == tree - suite
    assert code_in(wheel_of_conformance) == suite


def test_the_suite_has_the_version_of_the_package_and_depends_on_it() -> None:
    project = tomllib.loads((CONFORMANCE / "pyproject.toml").read_text())["project"]
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["version"] == VERSION
    assert f"windlass=={VERSION}" in project["dependencies"]
    assert {key: project[key] for key in ("license", "requires-python")} == {
        key: package[key] for key in ("license", "requires-python")
    }


def test_without_the_suite_an_app_is_tested_as_ever(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "environment")
    environment.install(wheel)
    (tmp_path / "test_greet.py").write_text(TEST_OF_A_USER)
    missing = (
        "import importlib.util, windlass.testing; "
        "print(windlass.testing.__file__, importlib.util.find_spec('windlass.testing.conformance'))"
    )

    told = environment.run(tmp_path, "-c", missing)
    tests = environment.run(
        tmp_path,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:valkey",
        "-o",
        "asyncio_mode=auto",
        "-o",
        "windlass_app=test_greet:app",
    )

    assert told.startswith(str(tmp_path))
    assert told.split()[1] == "None"
    assert "1 passed" in tests


def test_with_the_suite_a_store_proves_itself_as_the_page_says(
    wheel: Path, wheel_of_conformance: Path, tmp_path: Path
) -> None:
    environment = Environment(tmp_path / "environment")
    environment.install(wheel)
    environment.install(wheel_of_conformance)
    store = tmp_path / "store"
    store.mkdir()
    write_files(PAGE, store)
    (store / "my_store.py").write_text(MY_STORE)
    shutil.copytree(ROOT / "examples" / "dictionary_store", store / "examples" / "dictionary_store")

    where = environment.run(store, "-c", "import windlass.testing.conformance as suite; print(suite.__file__)")
    told = environment.run(
        store,
        *("-m", "pytest", "-q", "-p", "no:valkey", "-o", "asyncio_mode=auto"),
        *("test_my_store.py", "test_my_store_and_the_model.py", "-k", "enqueue or model"),
    )

    assert where.startswith(str(tmp_path))
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None
    assert int(passed[1]) > 10
