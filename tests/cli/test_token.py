import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from windlass.http.token_file import TokenFile
from windlass.http.tokens import hash_of

FILE = Path("windlass-tokens.toml")
FORM = re.compile(r"wl_[A-Za-z0-9_-]{43}")
WITHOUT_WEB = """
import sys
sys.modules.update(dict.fromkeys(("starlette", "uvicorn", "httptools")))
from windlass.cli.program import program
program(sys.argv[1:], prog_name="windlass")
"""


def make(run: Run, *words: str, name: str = "ci") -> str:
    done = run("token", "new", "--name", name, "--role", "produce", *words)
    assert done.code == 0, done.err
    return done.out.strip()


def test_a_new_token_is_printed_once_and_kept_by_its_hash(run: Run) -> None:
    secret = make(run)

    assert FORM.fullmatch(secret)
    assert secret not in FILE.read_text()
    assert hash_of(secret) in FILE.read_text()
    found = TokenFile(FILE.absolute()).find(secret)
    assert found is not None
    assert found.name == "ci"


def test_only_the_token_is_on_stdout(run: Run) -> None:
    done = run("token", "new", "--name", "ci", "--role", "view")

    assert FORM.fullmatch(done.out.removesuffix("\n"))
    assert done.err == "keep it, it is not shown again; ci is in windlass-tokens.toml by its hash\n"


def test_a_new_file_is_its_owners_alone(run: Run) -> None:
    make(run)

    assert stat.S_IMODE(FILE.stat().st_mode) == 0o600


def test_everything_that_was_said_of_a_token_is_kept(run: Run) -> None:
    words = ["--role", "work", "--queue", "email", "--queue", "a/b#c", "--rate", "2.5", "--json"]
    told = run("token", "new", "--name", "ci", "--role", "produce", *words).document

    listed = run("token", "list", "--json").document["tokens"]

    assert FORM.fullmatch(told.pop("token"))
    assert told.pop("file") == str(FILE)
    assert listed == [told]
    assert listed[0].pop("created_at").endswith("Z")
    assert listed == [{"name": "ci", "roles": ["produce", "work"], "queues": ["a/b#c", "email"], "rate": 2.5}]


def test_the_list_shows_what_each_may_do_and_no_hash(run: Run) -> None:
    first, second = make(run, "--queue", "email", "--rate", "50"), make(run, name="web")

    lines = run("token").out.splitlines()

    assert [line.split()[:4] for line in lines] == [
        ["NAME", "ROLES", "QUEUES", "RATE"],
        ["ci", "produce", "email", "50/s"],
        ["web", "produce", "all", "-"],
    ]
    assert hash_of(first) not in "".join(lines)
    assert hash_of(second) not in "".join(lines)


def test_a_token_that_is_removed_is_worth_nothing(run: Run) -> None:
    gone, kept = make(run), make(run, name="web")

    done = run("token", "remove", "ci")

    tokens = TokenFile(FILE.absolute())
    assert (done.code, done.out) == (0, "ci is removed\n")
    assert tokens.find(gone) is None
    assert tokens.find(kept) is not None


def test_the_last_one_that_is_removed_leaves_nobody(run: Run) -> None:
    make(run)

    assert run("token", "remove", "ci", "--json").document == {"removed": "ci"}

    assert run("token", "list", "--json").document == {"tokens": []}
    assert "nobody is let in" in run("token").err


def test_a_token_that_is_not_there_is_not_removed(run: Run) -> None:
    make(run)
    before = FILE.read_bytes()

    done = run("token", "remove", "web\x1b[31m")

    assert done.code == 4
    assert done.err == ("error: no token in windlass-tokens.toml is called 'web\\x1b[31m': there are ci\n")
    assert FILE.read_bytes() == before


def test_a_name_is_given_once(run: Run) -> None:
    make(run)
    before = FILE.read_bytes()

    done = run("token", "new", "--name", "ci", "--role", "view")

    assert (done.code, done.out) == (2, "")
    assert "there is a token called 'ci' already" in done.err
    assert FILE.read_bytes() == before


@pytest.mark.parametrize("by", ["flag", "environment"])
def test_another_file_may_be_named(run: Run, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    if by == "environment":
        monkeypatch.setenv("WINDLASS_TOKENS", "mine.toml")
    words = ["--tokens", "mine.toml"] if by == "flag" else []

    make(run, *words)

    assert not FILE.exists()
    assert run("token", "list", "--json", *words).document["tokens"][0]["name"] == "ci"
    assert "WINDLASS_TOKENS" not in run("config", "--json").out


@pytest.mark.parametrize(
    "words,said",
    [
        (["new", "--role", "view"], "missing option '--name'"),
        (["new", "--name", "ci"], "missing option '--role'"),
        (["new", "--name", "ci", "--role", "boss"], "'boss' is not one of 'view', 'produce'"),
        (["new", "--name", "a b", "--role", "view"], "has the character ' '"),
        (["new", "--name", "", "--role", "view"], "is empty"),
        (["new", "--name", "a\r\nb", "--role", "view"], "has the character '\\r'"),
        (["new", "--name", "ci", "--role", "view", "--queue", "a b"], "queue 'a b'"),
        (["new", "--name", "ci", "--role", "view", "--queue", ""], "is empty"),
        (["new", "--name", "ci", "--role", "view", "--rate", "0"], "the rate is a number"),
        (["new", "--name", "ci", "--role", "view", "--rate", "nan"], "the rate is a number"),
        (["new", "--name", "ci", "--role", "view", "--rate", "x"], "--rate"),
        (["new", "--name", "ci", "--role", "view", "--tokens", "none/t.toml"], "No such file or directory"),
        (["list"], "windlass token new"),
        (["remove", "ci"], "windlass token new"),
        (["remove"], "missing argument 'NAME'"),
        (["nwe"], "did you mean 'new'?"),
    ],
)
def test_wrong_use_is_one_line_and_makes_no_file(run: Run, words: list[str], said: str) -> None:
    done = run("token", *words)

    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("words", [["new", "--name", "web", "--role", "view"], ["list"], ["remove", "ci"]])
@pytest.mark.parametrize("harm", ["mode", "text"])
def test_a_file_that_cannot_be_used_is_left_as_it_is(run: Run, words: list[str], harm: str) -> None:
    make(run)
    if harm == "mode":
        FILE.chmod(0o644)
    else:
        FILE.write_text("[[token]]\nname = 'ci'")
    before = FILE.read_bytes()

    done = run("token", *words)

    assert done.code == 2
    assert ("chmod 0600" if harm == "mode" else "it has no roles") in done.err
    assert FILE.read_bytes() == before


def test_a_symbolic_link_is_not_written_through(run: Run) -> None:
    FILE.symlink_to("elsewhere.toml")

    done = run("token", "new", "--name", "ci", "--role", "view")

    assert (done.code, done.out) == (2, "")
    assert "symbolic link" in done.err
    assert not Path("elsewhere.toml").exists()


def test_tokens_are_made_where_nothing_is_installed_to_serve() -> None:
    words = [sys.executable, "-c", WITHOUT_WEB, "token", "new", "--name", "ci", "--role", "view", "--json"]

    done = subprocess.run(words, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert FORM.fullmatch(json.loads(done.stdout)["token"])
