import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import write_files

PAGE = "howto/prove-your-own-store.md"
MY_STORE = """
from pathlib import Path

from examples.dictionary_store.store import DictionaryStore
from windlass.core.clock import Clock


class MyStore(DictionaryStore):
    def __init__(self, path: Path, *, clock: Clock) -> None:
        super().__init__(clock=clock)
"""


@pytest.mark.parametrize(
    "arguments",
    [["test_my_store.py", "-k", "enqueue or rescue or unique or parcel"], ["test_my_store_and_the_model.py"]],
)
def test_a_store_proves_itself_as_the_page_says(tmp_path: Path, arguments: list[str]) -> None:
    write_files(PAGE, tmp_path)
    (tmp_path / "my_store.py").write_text(MY_STORE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", *arguments]

    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"WINDLASS_EXAMPLES": "5", "PYTHONPATH": f"{Path.cwd() / 'src'}:{Path.cwd()}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
