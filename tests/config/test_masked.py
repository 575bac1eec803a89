import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.config.masked import masked, sounds_secret


@pytest.mark.parametrize(
    "url, shown",
    [
        ("postgres://user:hunter2@host:5432/db", "postgres://user:***@host:5432/db"),
        ("redis://:hunter2@host", "redis://:***@host"),
        ("postgres://user:hun@ter/2@host/db", "postgres://user:***@host/db"),
        ("postgres://host/db?user=me&password=hunter2&a=b", "postgres://host/db?user=me&password=***&a=b"),
        ("postgres://host/db?p%61ssword=hunter2", "postgres://host/db?p%61ssword=***"),
        ("postgres://user:hunter2@host/db?sslpassword=hun@ter2", "postgres://user:***@host/db?sslpassword=***"),
        ("slatedb+s3://bucket/prefix?secret_access_key=hunter2", "slatedb+s3://bucket/prefix?secret_access_key=***"),
        ("postgres://user:hun?token=ter2@host/db", "postgres://***"),
    ],
)
def test_a_password_is_hidden(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "memory://",
        "sqlite:///jobs.db?synchronous=normal",
        "sqlite:////srv/a:b@c/jobs.db",
        "postgres://user@host:5432/db",
        "redis+sentinel://h1:1,h2:2/master/0",
    ],
)
def test_a_url_without_a_password_is_shown_whole(url: str) -> None:
    assert masked(url) == url


@given(
    password=st.text(string.ascii_letters + string.digits + string.punctuation, min_size=1).map(
        lambda rest: "hunter2" + rest
    ),
    options=st.sampled_from(["", "?create=no", "?password=x"]),
)
def test_no_password_is_ever_shown_whatever_is_in_it(password: str, options: str) -> None:
    assert "hunter2" not in masked(f"postgres://user:{password}@host/db{options}")


@pytest.mark.parametrize("text", ["author_id", "authors", "AUTHOR", "monke", "plain " * 1_000, ""])
def test_what_sounds_like_no_secret_does_not(text: str) -> None:
    assert not sounds_secret(text)


@pytest.mark.parametrize(
    "text", ["authorization", "authority", "oauth", "authors auth", "a" * 10_000 + "PaSs", "monkey", "Dsn", "auth"]
)
def test_a_word_for_a_secret_is_found_anywhere(text: str) -> None:
    assert sounds_secret(text)
