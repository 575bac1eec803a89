"""What the pages on `windlass serve` say, held against the code and the examples."""

import re
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.docs.outside_settings import check_command, check_environment, check_grace
from tests.docs.pages import DOCS, named, rows, section, text_of
from tests.docs.plain_yaml import read
from windlass.api.claims import MOST_WAIT, Ending
from windlass.api.operations import OPERATIONS, ROOT, Operation
from windlass.api.problems import Problem
from windlass.api.roles import Role
from windlass.cli.serve import serve
from windlass.config.settings import SETTINGS
from windlass.http.body import ARRIVES_WITHIN
from windlass.http.connection import HEADER_TIME, MOST_HEADERS, WRITE_TIME
from windlass.http.crowd import CROWDED_TIME, MOST_CONNECTIONS, MOST_PER_ADDRESS, Crowd
from windlass.http.payload_reading import AT_ONCE, IN_FLIGHT, LARGEST_PAGE, WAIT
from windlass.http.replies import KEPT_FOR
from windlass.http.streaming import MOST_OF_ONE, MOST_STREAMS, STILL_HERE
from windlass.http.throttle import FAILURES, LONGEST_WAIT
from windlass.http.tls_handshake import HANDSHAKE_TIME
from windlass.http.token_table import MOST_TOKENS, read_tokens
from windlass.stores.http.address import read_address

SERVING: Final = "howto/serve-a-store-over-http.md"
TOKENS: Final = "howto/give-out-tokens.md"
LANGUAGES: Final = "howto/use-windlass-from-any-language.md"
WORKING: Final = "explanation/how-serve-works-here.md"
EXAMPLES: Final = DOCS.parent / "examples" / "http"
UNIT: Final = "/etc/systemd/system/windlass-serve.service"
ENVIRONMENT: Final = "/etc/windlass/serve.env"
VERIFIER: Final = shutil.which("systemd-analyze")
BLOCK: Final = r"^```{}\n(.*?)^```$"
COMMAND: Final = re.compile(r"^(?:\$ )?windlass serve (.*?[^\\])$", re.MULTILINE | re.DOTALL)
CALLS: Final = re.findall(r"^\$ call (\S+) '(.*)'\n(.*)$", text_of(LANGUAGES), re.MULTILINE)
NAME: Final = re.compile(r"`(\w+)`")
EVERYONE: Final = {operation.name for operation in OPERATIONS if operation.roles == frozenset(Role)}


def blocks(page: str, language: str) -> list[str]:
    """Return what is fenced as `language`."""
    return re.findall(BLOCK.format(language), text_of(page), re.MULTILINE | re.DOTALL)


def pairs(text: str) -> list[tuple[str, str]]:
    """Return the lines that set something."""
    lines = [line for line in text.splitlines() if line and line[0] not in "#["]
    return [(key, value) for key, _, value in (line.partition("=") for line in lines)]


def given(words: list[str]) -> dict[str, Any]:
    """Return what `windlass serve` makes of its arguments; those that it does not know are refused."""
    return serve.make_context("windlass serve", words).params


SERVED: Final = [
    command.replace("\\\n", " ").removesuffix(" &").split()
    for page in (SERVING, LANGUAGES)
    for language in ("sh", "console")
    for block in blocks(page, language)
    for command in COMMAND.findall(block)
]


@pytest.mark.parametrize("words", SERVED, ids=" ".join)
def test_serve_understands_every_command_of_the_pages(words: list[str]) -> None:
    assert given(words)["store"].startswith("sqlite:///")


def test_the_pages_show_commands_and_calls() -> None:
    assert len(SERVED) == 5
    assert len(CALLS) == 7


def test_the_unit_serves_a_file_in_the_folder_that_it_may_write_to() -> None:
    unit = dict(pairs(named(SERVING, "ini")[UNIT]))
    program, command, *words = unit["ExecStart"].split()
    options = given(words)

    assert (Path(program).name, command) == ("windlass", "serve")
    assert Path(options["store"].removeprefix("sqlite:///")).parent == Path("/var/lib") / unit["StateDirectory"]
    check_grace(_seconds(unit["TimeoutStopSec"]))
    assert unit["EnvironmentFile"] == f"-{ENVIRONMENT}"
    check_environment(dict(pairs(named(SERVING, "ini")[ENVIRONMENT])))


@pytest.mark.skipif(VERIFIER is None, reason="systemd is not installed")
def test_systemd_knows_every_line_of_the_unit(tmp_path: Path) -> None:
    text = named(SERVING, "ini")[UNIT]
    program, *_ = dict(pairs(text))["ExecStart"].split()
    file = tmp_path / Path(UNIT).name
    file.write_text(text.replace(program, sys.executable))

    done = subprocess.run(
        [str(VERIFIER), "verify", "--man=no", str(file)], capture_output=True, text=True, check=False, timeout=60
    )

    assert [line for line in done.stderr.splitlines() if "windlass" in line] == []


def test_compose_serves_one_process_to_workers_by_a_name_that_is_allowed() -> None:
    services = read(named(SERVING, "yaml")["compose.yaml"])["services"]
    serving, worker = services["serve"], services["worker"]
    program, command, *words = serving["command"]
    address = read_address("http", worker["environment"]["WINDLASS_URL"].removeprefix("http://"), "", {})

    options = given(words)
    assert (program, command) == ("windlass", "serve")
    assert (address.host, address.port) == (options["allowed_hosts"][0], options["bind"][1])
    assert serving["hostname"] == address.host
    check_command(worker["command"])
    for service in (serving, worker):
        check_grace(_seconds(service["stop_grace_period"].removesuffix("s")))


def test_the_settings_of_the_page_are_settings() -> None:
    known = {setting.name for setting in SETTINGS}
    told = rows(SERVING, "serving setting")
    also = {name for _, text in told for name in re.findall(r"`([a-z]+_[a-z_]+)`", text)}

    assert {name for name, _ in told} | also <= known


def test_the_page_has_the_limits_of_the_code() -> None:
    told = {limit: default for limit, default, _ in rows(SERVING, "limit")}
    defaults = given(["sqlite:///jobs.db"])

    assert told == {
        "--max-body": f"{defaults['max_body'] // 1024**2} MiB",
        "--max-connections": f"{MOST_CONNECTIONS:,}",
        "--max-per-address": f"{MOST_PER_ADDRESS:,}",
        "requests under way of one token": f"{Crowd().share:,} of {MOST_CONNECTIONS:,} connections",
        "`--rate` of a [token](give-out-tokens.md#rates)": "none",
        "wrong tokens": f"{FAILURES} a minute from one address",
        "a wait for claims, stops or ends": f"{MOST_WAIT:g} s",
        "news streams": f"{MOST_STREAMS:,}",
        "streams of one token": f"{MOST_OF_ONE:,}",
        "payloads and results in flight of one token": f"{IN_FLIGHT // 1024**2} MiB",
        "a handshake of TLS": f"{HANDSHAKE_TIME:g} s",
        "the headers of a request": f"{MOST_HEADERS // 1024} KiB, {HEADER_TIME:g} s",
        "the body of a request": f"{ARRIVES_WITHIN:g} s",
        "a reader who takes nothing of a reply": f"{WRITE_TIME:g} s",
    }
    assert f"after {CROWDED_TIME:g} s when it is crowded" in text_of(SERVING)
    assert f"wait up to {WAIT:g} s, then 429" in text_of(SERVING)
    assert f"one\nreply has room for it, {LARGEST_PAGE // 1024**2} MiB" in text_of(WORKING)
    assert f"Above {AT_ONCE // 1024} kB" in text_of(WORKING)
    assert LONGEST_WAIT == 15 * 60
    assert "up to a quarter of an hour" in text_of(SERVING)
    assert KEPT_FOR == 10 * 60
    assert "in memory, for ten minutes" in text_of(WORKING)
    assert f"says each {STILL_HERE:g} s that it is there" in text_of(SERVING)
    assert f"Up to {MOST_TOKENS:,} tokens" in text_of(TOKENS)


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_the_page_has_what_a_role_may_call(role: Role) -> None:
    [told] = [calls for name, _, calls in rows(TOKENS, "role") if name == role]

    allowed = {operation.name for operation in OPERATIONS if role in operation.roles}
    assert set(NAME.findall(told)) == allowed - EVERYONE


def test_the_page_has_every_role_and_what_all_may_call() -> None:
    _, _, below = section(TOKENS, "Roles").partition("Every role may look at single jobs and wait for them: ")

    assert [name for name, *_ in rows(TOKENS, "role")] == [role.value for role in Role]
    assert set(NAME.findall(below.partition(". ")[0])) == EVERYONE


def test_the_file_of_tokens_that_the_page_shows_can_be_read() -> None:
    [text] = blocks(TOKENS, "toml")

    [token] = read_tokens(text)
    assert (token.name, token.queues, token.rate) == ("site", frozenset({"email"}), 50.0)


@pytest.mark.parametrize("language, file", [("sh", "jobs.sh"), ("js", "jobs.mjs")])
def test_the_page_quotes_the_examples_as_they_are(language: str, file: str) -> None:
    text = (EXAMPLES / file).read_text(encoding="utf-8")
    quoted = [block for block in blocks(LANGUAGES, language) if not block.startswith("windlass serve")]

    assert len(quoted) >= 5
    for block in quoted:
        assert block in text


@pytest.mark.parametrize("path, body, answer", CALLS, ids=[path for path, *_ in CALLS])
def test_the_calls_of_the_page_have_the_shapes_of_the_api(path: str, body: str, answer: str) -> None:
    operation = _operation(f"{ROOT}/{path}")
    if answer.startswith('{"error"'):
        msgspec.json.decode(answer, type=Problem)
    else:
        msgspec.json.decode(body, type=operation.asks)
        # what is told may grow, so that a reader ignores what it does not know; the page shows nothing of the kind
        told = msgspec.json.decode(answer, type=operation.tells)
        assert msgspec.json.decode(msgspec.json.encode(told)) == msgspec.json.decode(answer)


def test_the_page_has_every_way_to_settle_and_its_fields() -> None:
    kinds = {kind.__struct_config__.tag: set(kind.__struct_fields__) for kind in Ending.__args__}
    told = {verb: set(re.findall(r"\w+", fields)) - {"or"} for verb, _, fields in rows(LANGUAGES, "`do`")}
    common = {"id", "token", "keep", "then", "kv"}

    assert told == {tag: fields - common - {"codec"} for tag, fields in kinds.items()}


def _operation(path: str) -> Operation[Any, Any]:
    [found] = [each for each in OPERATIONS if (each.method, each.path) == ("POST", path)]
    return found


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=int(text))
