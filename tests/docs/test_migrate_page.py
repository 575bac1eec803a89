"""What the page on migrations shows is what the command answers."""

import re
import shlex
from urllib.parse import urlsplit

from tests.cli.conftest import Run, run
from tests.docs.pages import TERMINAL, text_of
from tests.postgres.cluster import schema_of

__all__ = ["run"]

PAGE = text_of("howto/migrate-a-store.md")
URL = "postgres://shop@db/shop?schema=jobs"
PLACE = "database shop at db, schema jobs"
SHOWN = [
    (command, answer)
    for block in TERMINAL.findall(PAGE)
    for command, answer in re.findall(r"^\$ windlass (migrate.*)\n((?:[^$].*\n)*)", block, re.MULTILINE)
]


def test_every_answer_that_the_page_shows_is_given(run: Run, schema: str) -> None:
    parts = urlsplit(schema)
    place = f"database {parts.path[1:]} at {parts.netloc.rpartition('@')[2]}, schema {schema_of(schema)}"
    told = [(command, answer) for command, answer in SHOWN if answer]

    assert len(told) == 3
    for command, answer in told:
        done = run(*shlex.split(command.replace(URL, schema)))

        assert done.out == answer.replace(PLACE, place), command
