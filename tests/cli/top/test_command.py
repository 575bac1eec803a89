import sys

import pytest

import windlass
from tests.cli.conftest import URL, Run
from windlass.cli.top import command


@pytest.fixture(autouse=True)
def _some_jobs() -> None:
    with windlass.connect_sync(URL, max_attempts=1) as client:
        client.enqueue("email", {"password": "hunter2"}, kind="send")
        client.enqueue("email", kind="send")
        claim = client.claim("email")
        assert claim is not None
        client.nack(claim, ConnectionError("refused \x1b[2J"))


@pytest.mark.parametrize("words", [[], ["--once"]])
def test_where_nobody_looks_one_frame_is_printed(run: Run, words: list[str]) -> None:
    done = run("top", "--url", URL, *words)

    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert lines[0].startswith("0 servers  running 0  pending 1  dead 1  in ")
    assert next(line for line in lines if line.startswith("email")).split()[1:5] == ["1", "0", "0", "1"]
    assert any("ConnectionError: refused \\x1b[2J" in line for line in lines)
    assert "\x1b" not in done.out


def test_programs_get_one_document_without_any_payload(run: Run) -> None:
    done = run("top", "--url", URL, "--json")

    [queue] = done.document["queues"]
    assert (queue["queue"], queue["pending"], queue["dead"], len(queue["ended_by_minute"])) == ("email", 1, 1, 30)
    assert sorted(job["state"] for job in done.document["jobs"]) == ["dead", "pending"]
    assert done.document["dead"] == [{"error": "ConnectionError", "queue": "email", "kind": "send", "count": 1}]
    assert "hunter2" not in done.out


def test_jobs_are_chosen_as_on_the_screen(run: Run) -> None:
    chosen = run("top", "--url", URL, "--json", "--filter", "state:dead queue:email")

    assert [job["state"] for job in chosen.document["jobs"]] == ["dead"]


@pytest.mark.parametrize(
    "words,said",
    [
        (["--interval", "0"], "it is 0.1 s at least"),
        (["--filter", "state:dedd"], "state is one of"),
        (["--filter", "queue:"], "queue:something"),
        (["--filter", "queue:a,b"], "','"),
    ],
)
def test_what_cannot_be_meant_is_refused(run: Run, words: list[str], said: str) -> None:
    done = run("top", "--url", URL, *words)

    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_the_live_view_alone_needs_the_extra(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "windlass.cli.top.screen", raising=False)
    monkeypatch.setitem(sys.modules, "textual.app", None)
    monkeypatch.setattr(command, "_on_terminal", lambda: True)

    live, once = run("top", "--url", URL), run("top", "--url", URL, "--once")

    assert (live.code, once.code) == (2, 0)
    assert live.err == "error: windlass top needs the extra 'top': pip install 'windlass[top]'\n"
