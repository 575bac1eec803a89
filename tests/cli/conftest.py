import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from windlass.cli.program import program

URL = "sqlite:///jobs.db"
APP = """
from typing import Annotated

import windlass
from windlass import Context, Secret

app = windlass.App("sqlite:///jobs.db")


@app.job(queue="email", max_attempts=5, aliases=["greet"])
async def send_welcome(user_id: int, *, locale: str = "en") -> str:
    return f"welcome {user_id} in {locale}"


@app.job
def move(place: str, floor: str | None = None, ctx: Context = windlass.given()) -> None: ...


@app.job
def take(**anything: object) -> None: ...
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - the JSON edge
        return json.loads(self.out)


class Run(Protocol):
    def __call__(self, *args: str, stdin: bytes = b"") -> Ended: ...


@pytest.fixture(autouse=True)
def _empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with nothing in it, no settings from outside, and modules that are gone with the test."""
    for name in os.environ:
        if name.startswith("WINDLASS_") or name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def call(*args: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            program(list(args), prog_name="windlass")
        out, err = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Ended(code, out, err)

    return call


@pytest.fixture
def app_file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.py"
    path.write_text(APP)
    return path
