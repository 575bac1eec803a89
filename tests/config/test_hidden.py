import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.config import hidden as hiding
from windlass.config.hidden import hidden, hidden_headers, hidden_in_json, hidden_payload, json_with_hidden
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


def _steps_of(work: Callable[[], object]) -> int:
    """Return how many instructions of Python `work` takes, which no clock and no other process changes."""
    count = 0

    def counted(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 - a trace function returns itself
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _nested(rows: int) -> object:
    inner: object = {"n": 1, "text": "plain"}
    for _ in range(6):
        inner = [inner, 2]
    return [inner] * rows


def _added_by(rows: int, paths: int) -> int:
    """Return the steps that so many rows take beside those of reading the paths."""
    headers = {HEADER: ",".join(f"[][][][][][][].pin{n}" for n in range(paths))}
    empty, full = _nested(0), _nested(rows)
    return _steps_of(lambda: hidden_payload(full, headers)) - _steps_of(lambda: hidden_payload(empty, headers))


def test_a_payload_is_looked_through_once_however_many_paths_lead_into_it() -> None:
    assert _added_by(50, paths=32) < 1.1 * _added_by(50, paths=1)


def test_the_work_grows_as_the_payload_does() -> None:
    assert _added_by(100, paths=32) < 2.1 * _added_by(50, paths=32)


def test_of_a_beginning_only_the_beginning_is_looked_at() -> None:
    value = [{"n": n, "password": "hush"} for n in range(10_000)]

    shown = hidden(value, most=200)

    assert json.dumps(shown)[:200] == json.dumps(hidden(value))[:200]
    assert _steps_of(lambda: hidden(value, most=200)) < _steps_of(lambda: hidden(value)) / 100


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["a", "b", "pin", "password", "[]", "größe"]) | st.text(), inner, max_size=5)
    ),
    max_leaves=30,
)


@given(value=_VALUES, most=st.integers(0, 200), paths=st.sampled_from(["", "a.pin,pin", "[].a,b[].pin,a[][]"]))
def test_a_beginning_reads_as_the_whole_does_up_to_there(value: object, most: int, paths: str) -> None:
    whole = hidden_payload(value, {HEADER: paths})
    begun = hidden_payload(value, {HEADER: paths}, most=most)

    as_text, cut = (json.dumps(each, ensure_ascii=False) for each in (whole, begun))
    assert cut[:most] == as_text[:most]


@pytest.mark.parametrize("most", range(60))
def test_a_secret_at_the_border_of_what_is_shown_is_hidden_whole(most: int) -> None:
    value = {"note": "a" * 20, "password": "hush", "list": [{"pin": "hush"}], "passport": ["hush"] * 3}

    shown = json.dumps(hidden_payload(value, {HEADER: "list[].pin"}, most=most))

    assert "h" not in shown.replace("shown", "")


@pytest.mark.parametrize(
    "name", ["pa\u017f\u017fword", "TO\u212aEN", "cred\u0130t_CREDENT\u0130AL", "cred\u0131t_credent\u0131al"]
)
def test_letters_that_differ_by_case_alone_in_any_script_are_the_same(name: str) -> None:
    assert hidden({name: "hush"}) == {name: "***"}


@given(value=_VALUES, paths=st.sampled_from(["", "a.pin,pin", "[].a,b[].pin,a[][]"]), split=st.integers(0, 30))
def test_json_that_is_read_part_by_part_reads_as_the_whole_does(value: object, paths: str, split: int) -> None:
    whole = hidden_payload(value, {HEADER: paths})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hiding, "_SPLIT", split)
        patched.setattr(hiding, "_FEW", 0)
        for data in (msgspec.json.encode(value), json.dumps(value, indent=2).encode()):
            assert hidden_in_json(data, {HEADER: paths}) == whole
            assert msgspec.json.decode(json_with_hidden(data, {HEADER: paths})) == whole


@pytest.mark.parametrize("part", [b"x", b'"\xff"', b"[1,]", b'{"a" 1}', b"1e999", b'"\\ud800"'])
@pytest.mark.parametrize("form", [b"[%b,%b]", b'{"a":%b,"b":%b}', b"[[%b],%b]"])
def test_what_is_no_json_anywhere_is_none(part: bytes, form: bytes) -> None:
    large = b'["' + b"a" * 20_000 + b'"]'

    for data in (form % (large, part), form % (part, large)):
        with pytest.raises((msgspec.MsgspecError, ValueError)):
            json_with_hidden(data, {})


def test_what_is_nested_deeply_is_read_to_its_end_or_refused() -> None:
    for depth in (10, 100, 500, 5_000):
        data = b"[" * depth + b'{"password":"hush","text":"%b"}' % (b"a" * 20_000) + b"]" * depth
        try:
            shown = json_with_hidden(data, {})
        except RecursionError:
            assert depth > 100
        else:
            assert b"hush" not in shown
            assert shown == data.replace(b"hush", b"***")
