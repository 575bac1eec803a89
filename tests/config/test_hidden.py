import pytest

from windlass.config.hidden import hidden


@pytest.mark.parametrize(
    "name", ["password", "API_KEY", "x-auth", "Authorization", "session_cookie", "dsn", "refreshToken", "client_secret"]
)
def test_what_stands_under_a_name_that_sounds_secret_is_hidden(name: str) -> None:
    value = {"user": {"id": 1, name: {"deep": "hush"}}, "list": [{name: "hush"}, "kept"]}

    assert hidden(value) == {"user": {"id": 1, name: "***"}, "list": [{name: "***"}, "kept"]}


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, {"author": "me", "author_id": 1, "authors": [2]}])
def test_everything_else_is_shown_as_it_is(value: object) -> None:
    assert hidden(value) == value
