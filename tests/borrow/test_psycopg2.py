"""Our statements in the style of psycopg2, which writes the values into the text by itself."""

import re
from importlib.resources import files

import pytest

from windlass.borrow.psycopg2 import in_its_style
from windlass.stores.postgres.statements import statement

SQL = files("windlass.stores.postgres") / "sql"
STATEMENTS = sorted(path.name.removesuffix(".sql") for path in SQL.iterdir() if path.name.endswith(".sql"))


def test_parameters_have_names() -> None:
    assert in_its_style("select $1::text, $12::int[], $1") == "select %(p1)s::text, %(p12)s::int[], %(p1)s"


def test_a_percent_sign_is_doubled_where_there_are_parameters() -> None:
    assert in_its_style("select $1 % 2, 'a%'") == "select %(p1)s %% 2, 'a%%'"
    assert in_its_style("select 5 % 2") == "select 5 % 2"


def test_no_value_is_written_into_a_comment() -> None:
    assert in_its_style("-- $1 is the id\nselect $1 -- and $2\n") == "\nselect %(p1)s \n"


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_statement_can_be_written_so(name: str) -> None:
    """The translation is mechanical: a quoted text that looks like a comment or a parameter would break it."""
    text = statement(name).text
    quoted = re.findall(r"'[^']*'", re.sub(r"--[^\n]*", "", text))

    assert not [text for text in quoted if "--" in text or re.search(r"\$\d", text)]
