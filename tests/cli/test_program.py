import subprocess
import sys
from pathlib import Path

import click
import pytest

import windlass
from tests.cli.conftest import URL, Run
from windlass.cli.known_commands import DefaultGroup
from windlass.cli.program import COMMANDS, program
from windlass.core import errors
from windlass.exit_codes import MEANINGS, ExitCode, exit_code_of


def command(name: str) -> click.Command:
    found = program.get_command(click.Context(program), name)
    assert found is not None
    return found


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(run: Run, words: list[str]) -> None:
    done = run(*words)

    assert (done.code, done.err) == (0, "")
    assert all(f"  {name} " in done.out and place.summary in done.out for name, place in COMMANDS.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_the_first_line_of_its_help(name: str) -> None:
    assert (command(name).help or "").strip().splitlines()[0] == COMMANDS[name].summary


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(run: Run, name: str) -> None:
    done = run(name, "--help")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: windlass {name} ")


@pytest.mark.parametrize("name", [name for name in COMMANDS if isinstance(command(name), DefaultGroup)])
def test_a_group_tells_whose_options_it_takes_without_a_command(run: Run, name: str) -> None:
    assert "Without a command it takes the options of `list`." in run(name, "--help").out


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_told(run: Run, flag: str) -> None:
    assert run(flag).out == f"windlass {windlass.__version__}\n"


@pytest.mark.parametrize("words", [[], ["jobs"], ["jobs", "retry"], ["worker"], ["help"]])
def test_the_help_of_a_command_is_shown_by_its_name(run: Run, words: list[str]) -> None:
    assert run("help", *words) == run(*words, "--help")


def test_a_job_is_explained_by_both_names_of_the_command(run: Run) -> None:
    with windlass.connect_sync(URL) as client:
        job = client.enqueue("mail")

    told = [run(*words, job.id, "--url", URL, "--json").document for words in (["jobs", "why"], ["why"])]

    assert [each["id"] for each in told] == [job.id, job.id]


NAMES_A_STORE = [
    ["stats"], ["doctor"], ["servers"], ["audit"], ["config"], ["top"], ["migrate"], ["queues"], ["queues", "list"],
    ["jobs"], ["jobs", "list"], ["dead"], ["dead", "list"], ["schedules"], ["schedules", "list"],
]  # fmt: skip


@pytest.mark.parametrize("words", NAMES_A_STORE, ids=" ".join)
def test_the_store_may_be_the_argument_as_a_url_or_as_an_app(run: Run, words: list[str], app_file: Path) -> None:
    with windlass.connect_sync("sqlite:///other.db") as client:
        client.enqueue("elsewhere")
    with windlass.connect_sync(URL) as client:
        client.enqueue("mail")

    by_url = run(*words, "sqlite:///other.db", "--json")
    by_app = run(*words, f"{app_file.stem}:app", "--json")

    assert (by_url.code, by_url.err) == (by_app.code, by_app.err) == (0, "")
    assert list(by_url.document) == list(run(*words, "--url", "sqlite:///other.db", "--json").document)
    if words[0] in ("queues", "jobs", "stats"):
        assert by_url.document != by_app.document


@pytest.mark.parametrize(
    "words",
    [
        ["queues", "pause", "reprots"],
        ["queues", "resume", "reprots"],
        ["stats", "--queue", "reprots"],
        ["schedules", "show", "nightly"],
        ["jobs", "show", "01a1f47b-c4c5-701c-997a-981cf653745f"],
        ["why", "01a1f47b-c4c5-701c-997a-981cf653745f"],
        ["jobs", "retry", "01a1f47b-c4c5-701c-997a-981cf653745f"],
        ["token", "remove", "nobody"],
    ],
    ids=" ".join,
)
def test_a_name_that_is_not_there_ends_with_four(run: Run, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_URL", URL)
    with windlass.connect_sync(URL) as client:
        client.enqueue("reports")
    run("token", "new", "--name", "somebody", "--role", "view")

    done = run(*words)

    assert done.code == ExitCode.NOT_FOUND


WITHOUT_EXTRAS = """
import sys

for name in ("starlette", "uvicorn", "jinja2", "httptools", "prometheus_client", "textual"):
    sys.modules[name] = None
from windlass.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["serve", "dashboard", "top"])
def test_a_command_whose_extra_is_missing_has_help_and_names_the_extra(name: str, tmp_path: Path) -> None:
    def without_extras(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", WITHOUT_EXTRAS, name, *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)

    with windlass.connect_sync(f"sqlite:///{tmp_path}/jobs.db") as client:
        client.enqueue("mail")

    helped = without_extras("--help")
    refused = without_extras("sqlite:///jobs.db")

    assert (helped.returncode, helped.stderr) == (0, "")
    assert f"windlass {name} " in helped.stdout
    if name != "top":  # without a terminal it prints a frame, which needs no extra
        assert refused.returncode == ExitCode.WRONG_USAGE
        assert f"windlass {name} needs the extra 'web': pip install 'windlass[web]'" in refused.stderr


@pytest.mark.parametrize(
    "words,said",
    [
        (["enqueu"], "no such command 'enqueu': did you mean 'enqueue'? (see windlass --help)"),
        (["zzz"], "no such command 'zzz': there are worker, enqueue,"),
        (["--nope"], "--nope"),
        (["config", "--nope"], "(see windlass config --help)"),
        (["enqueue", "--wiat", "5s"], "no such option '--wiat': did you mean '--wait'? (see windlass enqueue --help)"),
        (["why", "--job_id", "x"], "no such option '--job_id': look at the help (see windlass why --help)"),
        (["serve", "--ulr", "x"], "no such option '--ulr': did you mean '--url'? (see windlass serve --help)"),
        (["config", "tasks:app", "more"], "unexpected extra argument"),
        (["help", "nope"], "no such command 'nope': there are worker, enqueue,"),
        (["help", "jobs", "retyr"], "no such command 'retyr': did you mean 'retry'?"),
        (["help", "why", "more"], "windlass why has no commands below it: leave out 'more'"),
        (["doctor", "sqlite:///a.db", "--url", "sqlite:///b.db"], "named twice: leave out the argument, or --url"),
        (["stats", "tasks:app", "--app", "tasks:app"], "named twice: leave out the argument, or --app"),
        (["schedules", "show"], "missing argument 'ID'"),
        (["schedules", "show", "--url"], "--url"),
        (["enqueue", "--max-attempts", "x"], "--max-attempts"),
    ],
)
def test_wrong_usage_is_one_line_and_two(run: Run, words: list[str], said: str) -> None:
    done = run(*words)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert said in done.err


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "help"])
def test_every_command_prints_json_and_tracebacks_on_request(name: str) -> None:
    found = command(name)
    leaves = list(found.commands.values()) if isinstance(found, click.Group) else [found]

    for leaf in leaves:
        flags = {flag for parameter in leaf.params for flag in parameter.opts}
        assert {"--json", "--debug"} <= flags, leaf.name


def test_an_error_shows_its_traceback_only_on_request(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = ("schedules", "--url", "nonsense")

    assert "Traceback" not in run(*bad).err
    assert "Traceback" in run(*bad, "--debug").err
    monkeypatch.setenv("WINDLASS_DEBUG", "1")
    told = run(*bad)
    assert "Traceback" in told.err
    assert (told.code, told.err.splitlines()[-1][:7]) == (2, "error: ")


def test_an_app_that_raises_is_shown_by_its_own_frames(run: Run) -> None:
    Path("broken.py").write_text("print('hello')\n\n1 / 0  # \x1b[31m\n")

    done = run("enqueue", "x", "--app", "broken:app")

    assert (done.code, done.out) == (3, "")
    assert 'broken.py", line 3' in done.err
    assert "importlib" not in done.err
    assert "\x1b" not in done.err
    assert done.err.splitlines()[-1].startswith("error: the module 'broken' raised ZeroDivisionError")


def test_what_an_app_prints_is_no_part_of_the_document(run: Run, app_file: Path) -> None:
    app_file.write_text("print('loading')\n" + app_file.read_text())

    done = run("enqueue", "send_welcome", "user_id=1", "--app", "tasks:app", "--json")

    assert done.document["kind"] == "send_welcome"
    assert done.err == "loading\n"


@pytest.mark.usefixtures("app_file")
def test_an_app_is_not_loaded_where_the_url_is_enough(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    windlass.connect_sync(URL).open()
    monkeypatch.setenv("WINDLASS_APP", "broken:app")

    assert run("schedules", "--url", URL).code == 0
    assert run("schedules").code == 3


def test_a_flag_for_the_url_goes_over_the_app(run: Run, app_file: Path) -> None:
    assert app_file.exists()

    assert run("enqueue", "take", "--app", "tasks", "--url", "sqlite:///other.db").code == 0

    assert Path("other.db").exists()
    assert not Path("jobs.db").exists()


def test_the_settings_of_the_file_hold_for_a_command_without_an_app(run: Run) -> None:
    Path("pyproject.toml").write_text(f"[tool.windlass]\nurl = '{URL}'\n[tool.windlass.queue.q]\nmax_attempts = 9\n")

    assert run("enqueue", "--queue", "q", "--payload", "x").code == 0

    with windlass.connect_sync(URL) as client:
        assert [job.max_attempts for job in client.jobs()] == [9]


@pytest.mark.parametrize(
    "words,said",
    [
        (["stats", "sqlite:///jobs.db"], "got unexpected extra argument (redis://me:***@db): name the store by --url"),
        (["jobs", "show", "0123"], "extra argument (redis://me:***@db): name the store by --url URL (see"),
        (["token"], "a URL is no command: name the store by --url, windlass token --url URL (see"),
        ([], "a URL is no command: name the store by --url, windlass COMMAND --url URL (see"),
        (["serve", "sqlite:///jobs.db"], "got unexpected extra argument (redis://me:***@db): name the store by"),
        (["worker"], "a worker needs an app, and a URL names a store: windlass worker tasks:app --url URL"),
    ],
)
def test_a_url_that_stands_alone_belongs_to_an_option(run: Run, words: list[str], said: str) -> None:
    done = run(*words, "redis://me:hush@db")

    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "hush" not in done.err


def test_a_password_is_never_printed(run: Run) -> None:
    done = run("schedules", "--url", "postgres://me:hush@127.0.0.1:1/db?timeout=0.5")

    assert done.code == 5
    assert "hush" not in done.err


def test_an_exit_code_says_what_kind_of_error_it_was() -> None:
    assert exit_code_of(errors.AppNotLoaded("x")) == 3
    assert exit_code_of(errors.JobNotFound("x")) == exit_code_of(errors.ScheduleNotFound("x")) == 4
    assert exit_code_of(errors.Fenced("x")) == 6
    assert exit_code_of(errors.StoreCorrupt("x")) == exit_code_of(errors.SchemaTooOld("x")) == 5
    assert exit_code_of(errors.InvalidURL("x")) == exit_code_of(errors.EncodeError("x")) == 2
    assert exit_code_of(errors.NotAtomicHere("x")) == 2
    assert exit_code_of(errors.UniqueConflict("x", None)) == 1


def test_every_exit_code_is_explained() -> None:
    assert list(MEANINGS) == list(ExitCode)
