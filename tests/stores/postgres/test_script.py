import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.stores.postgres.script import OUTSIDE, is_outside, statements

WHOLE = [
    "select 1;",
    "-- a comment; with a semicolon\nselect 1;",
    "/* one; two */ select 1;",
    "select ';', 'it''s; so';",
    'create table "a;b" (n integer);',
    "do $$ begin perform 1; end $$;",
    "create function f() returns text language sql as $body$ select '$$;$$'; $body$;",
    "select $1::text, a.b from a where n <> '' -- why; because\n;",
]


@pytest.mark.parametrize("text", WHOLE)
def test_a_statement_ends_at_its_own_semicolon_only(text: str) -> None:
    assert list(statements(text)) == [text]


@given(st.lists(st.sampled_from(WHOLE)))
def test_a_script_is_its_statements(parts: list[str]) -> None:
    assert list(statements("\n\n".join(parts) + "\n-- the end\n")) == parts


@pytest.mark.parametrize("text", ["", "\n", "-- nothing\n", "-- nothing", "  -- a\n\n -- b"])
def test_comments_alone_are_no_statement(text: str) -> None:
    assert list(statements(text)) == []


def test_a_statement_without_its_semicolon_counts() -> None:
    assert list(statements("select 1;\nselect 2")) == ["select 1;", "select 2"]


def test_the_first_line_says_whether_it_runs_outside_a_transaction() -> None:
    assert is_outside(f"{OUTSIDE}\n\ncreate index concurrently i on t (n);")
    assert not is_outside(f"select 1;\n{OUTSIDE}\n")
