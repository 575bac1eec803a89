import pytest

from windlass.config.hidden import hidden, hidden_headers, hidden_payload
from windlass.core.names import MAX_HEADER
from windlass.handlers.secret_paths import HEADER


@pytest.mark.parametrize(
    "name", ["password", "API_KEY", "x-auth", "Authorization", "session_cookie", "dsn", "refreshToken", "client_secret"]
)
def test_what_stands_under_a_name_that_sounds_secret_is_hidden(name: str) -> None:
    value = {"user": {"id": 1, name: {"deep": "hush"}}, "list": [{name: "hush"}, "kept"]}

    assert hidden(value) == {"user": {"id": 1, name: "***"}, "list": [{name: "***"}, "kept"]}


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, {"author": "me", "author_id": 1, "authors": [2]}])
def test_everything_else_is_shown_as_it_is(value: object) -> None:
    assert hidden(value) == value


@pytest.mark.parametrize(
    "paths,value,shown",
    [
        ("pin", {"pin": "hush", "n": 1}, {"pin": "***", "n": 1}),
        ("pin", {"pin": {"deep": ["hush"]}}, {"pin": "***"}),
        ("card.number,pin", {"card": {"number": "hush", "n": 1}}, {"card": {"number": "***", "n": 1}}),
        ("items[].pin", {"items": [{"pin": "hush", "n": 1}, {}, 3]}, {"items": [{"pin": "***", "n": 1}, {}, 3]}),
        ("pins[]", {"pins": ["hush", "hush"]}, {"pins": ["***", "***"]}),
        ("by[].pin", {"by": {"a": {"pin": "hush"}, "b": {"n": 1}}}, {"by": {"a": {"pin": "***"}, "b": {"n": 1}}}),
        ("rows[][].pin", {"rows": [[{"pin": "hush"}], []]}, {"rows": [[{"pin": "***"}], []]}),
        ("a[].x,a.b.y", {"a": {"b": {"x": "hush", "y": "hush"}}}, {"a": {"b": {"x": "***", "y": "***"}}}),
        ("größe,user name", {"größe": "hush", "user name": "hush"}, {"größe": "***", "user name": "***"}),
        ("[]", {"a": "hush", "b": ["hush"]}, {"a": "***", "b": "***"}),
        ("[].pin", [{"pin": "hush"}], [{"pin": "***"}]),
        ("note", {"note": "hush", "password": "hush"}, {"note": "***", "password": "***"}),
        (".".join("a" * 20), {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": "hush"}}}}}}}}, None),
        (",".join(f"n{n}.x" for n in range(1_000)), {"n999": {"x": "hush"}}, {"n999": "***"}),
    ],
)
def test_what_the_paths_of_a_job_lead_to_is_hidden(paths: str, value: object, shown: object) -> None:
    told = hidden_payload(value, {HEADER: paths})

    assert shown in (None, told)
    assert "hush" not in str(told)


@pytest.mark.parametrize("value", [None, 3, "pin", [], ["pin"], {}, {"n": 1}, {"pin2": 1}, {"card": 3}, {"card": [1]}])
def test_paths_that_lead_nowhere_hide_nothing(value: object) -> None:
    assert hidden_payload(value, {HEADER: "pin,card.number,card.number.x[].y"}) == value


NONSENSE = (
    ",",
    ",,,",
    ".",
    "..",
    "a.",
    ".a",
    "a..n",
    "[",
    "]",
    "[0]",
    "[]n",
    "a[n]",
    "n.",
    "n\\",
    "$.n",
    "{n}",
    "[].[]",
)
LONG = ("[", ".", "a.", "[].")


@pytest.mark.parametrize("paths", ["", "\0", "\n", " n", *NONSENSE, *(each * (MAX_HEADER // 4) for each in LONG)])
def test_paths_that_mean_nothing_are_ignored(paths: str) -> None:
    value = {"n": "shown", "list": [{"n": "shown"}]}

    assert hidden_payload(value, {HEADER: paths}) == value


def test_the_header_that_tells_what_is_secret_is_not() -> None:
    headers = {HEADER: "pin", "x-secret": "hush", "trace": "1"}

    assert hidden_headers(headers) == {HEADER: "pin", "x-secret": "***", "trace": "1"}
