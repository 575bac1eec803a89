import tomllib
from pathlib import Path

import windlass
from proofs.children import eventually
from tests.docs.pages import DOCS, text_of
from tests.docs.walk import Step, Walk, alike, steps

PAGE = "tutorial/ten-minutes.md"
INSTALL = "$ python3 -m venv .venv\n$ . .venv/bin/activate\n$ pip install {name}\n"
QUICKER = (
    ('"*/10 * * * * *"', '"*/1 * * * * *"'),
    ("  */10 * * * * *  ", "  */1 * * * * *  "),
    ("seconds=10", "seconds=3"),
)


def quicker(text: str) -> str:
    """The page for somebody who has no ten minutes."""
    for slow, fast in QUICKER:
        assert slow in text
        text = text.replace(slow, fast)
    return text


def test_the_ten_minutes_go_as_the_page_says(tmp_path: Path) -> None:
    def somebody_naps() -> None:
        with windlass.connect_sync(f"sqlite:///{tmp_path}/jobs.db") as client:
            assert eventually(lambda: client.stats().running == 1)

    install, *rest = steps(quicker(text_of(PAGE)))

    # the environment of the tests stands for one that is made from an index
    assert install == Step("console", INSTALL.format(name=project_name()))
    with Walk(tmp_path, before_kill=somebody_naps) as walk:
        for step in rest:
            walk.follow(step)


def project_name() -> str:
    name: str = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]["name"]
    return name


def test_lines_are_alike_that_differ_in_what_is_another_each_time() -> None:
    one = "2026-11-15 16:04:15.276Z ERROR   child 4788 (server windlass#01a1dff3-b55b-7fc3-a817-883230351966) ended"
    other = "2027-01-01 00:00:00.000Z ERROR   child 12 (server windlass#01a1dff3-b55b-7fc3-a817-000000000000) ended"

    assert alike(one) == alike(other)
    assert alike(one) != alike(other.replace("ended", "began"))
