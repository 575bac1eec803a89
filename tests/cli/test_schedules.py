import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import windlass
from tests.cli.conftest import URL, Run
from windlass import NewJob
from windlass.cli.program import COMMANDS
from windlass.cli.schedules import schedules
from windlass.core.schedule import Schedule


@pytest.fixture
def nightly() -> Schedule:
    with windlass.connect_sync(URL) as client:
        job = NewJob("reports", {"user_id": 3, "api_token": "hush"}, kind="report", headers={"Authorization": "hush"})
        return client.schedules.put("nightly", "30 2 * * *", job, timezone="Europe/Berlin")


def stored(schedule_id: str) -> Schedule:
    with windlass.connect_sync(URL) as client:
        found = client.schedules.get(schedule_id)
        assert found is not None
        return found


@pytest.mark.parametrize("words", [[], ["list"]])
def test_schedules_are_listed_one_on_a_line(run: Run, nightly: Schedule, words: list[str]) -> None:
    done = run("schedules", *words, "--url", URL)

    head, line = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert head.split("  ")[0] == "ID"
    assert [part for part in line.split("  ") if part][:4] == ["nightly", "30 2 * * *", "Europe/Berlin", "active"]
    assert " 02:30:00 +0" in line
    assert line.endswith("report in reports")
    assert nightly.next_run_at is not None


def test_a_list_for_programs_has_everything_and_no_secret(run: Run, nightly: Schedule) -> None:
    done = run("schedules", "--json", "--url", URL)

    [told] = done.document["schedules"]
    assert told["id"] == "nightly"
    assert datetime.fromisoformat(told["next_run_at"]) == nightly.next_run_at
    assert told["payload"] == {"user_id": 3, "api_token": "***"}
    assert "hush" not in done.out


def test_an_empty_list_says_how_one_is_made(run: Run) -> None:
    windlass.connect_sync(URL).open()

    done = run("schedules", "--url", URL)

    assert (done.code, done.out) == (0, "")
    assert "windlass schedules put" in done.err
    assert run("schedules", "--json", "--url", URL).document == {"schedules": []}


def test_schedules_of_an_app_that_no_worker_has_written_yet_are_named(run: Run) -> None:
    windlass.connect_sync(URL).open()
    declared = "@app.every('@daily')\n@app.job\ndef report() -> None: ...\n"
    Path("tasks.py").write_text(f"import windlass\napp = windlass.App({URL!r})\n{declared}")

    done = run("schedules", "--app", "tasks:app")

    assert (done.code, done.out) == (0, "")
    assert done.err == "no schedules here yet: the first worker that starts writes those of the app, report\n"


@pytest.mark.usefixtures("nightly")
def test_one_is_shown_with_its_job_and_its_next_times(run: Run) -> None:
    done = run("schedules", "show", "nightly", "--url", URL)

    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines() if not line.startswith(("time", "max")))
    assert lines["rule"] == "30 2 * * *"
    assert lines["payload"] == '{"user_id": 3, "api_token": "***"}'
    assert done.out.count("\nthen ") == 3
    assert "hush" not in done.out
    assert run("schedules", "show", "nightly", "--json", "--url", URL).document["queue"] == "reports"


@pytest.mark.usefixtures("app_file")
def test_a_handler_is_put_on_a_schedule(run: Run) -> None:
    done = run(
        *("schedules", "put", "daily", "send_welcome", "user_id=42", "--cron", "@daily"),
        *("--catch-up", "all", "--overlap", "skip", "--priority", "low", "--app", "tasks:app"),
    )

    schedule = stored("daily")
    assert done.out.startswith("daily: next run ")
    assert (schedule.kind, schedule.queue, schedule.payload) == ("send_welcome", "email", b'{"user_id":42}')
    assert (schedule.rule, schedule.catch_up, schedule.overlap) == ("@daily", "all", "skip")
    assert (schedule.priority, schedule.max_attempts, schedule.declared) == (10_000, 5, False)


def test_a_raw_job_is_put_on_an_interval(run: Run) -> None:
    done = run("schedules", "put", "poll", "--every", "5m", "--queue", "mail", "--payload", "now", "--url", URL)

    assert "(in 5 min)" in done.out
    assert (stored("poll").rule, stored("poll").payload) == ("every 300s", b"now")


def test_what_was_put_is_told_to_programs(run: Run) -> None:
    given = ("--every", "60", "--queue", "q", "--payload", "x", "--json", "--url", URL)

    assert run("schedules", "put", "poll", *given).document["rule"] == "every 60s"


@pytest.mark.parametrize(
    "given,said",
    [
        (["x", "--queue", "q", "--payload", "x"], "give the rule, by --cron '30 2 * * *' or by --every 5m"),
        (["x", "0 0 * *", "--kind", "greet"], "give the rule, by --cron '30 2 * * *' or by --every 5m"),
        (["x", "greet", "--cron", "0 0 * *"], "cron expression '0 0 * *': has 4 fields"),
        (["x", "--queue", "q", "--payload", "x", "--cron", "@daily", "--every", "1"], "--cron or --every, not both"),
        (["x", "--queue", "q", "--payload", "x", "--cron", "nonsense"], "nonsense"),
        (["x", "--queue", "q", "--payload", "x", "--cron", "* * * * * * *"], "7"),
        (["x", "--queue", "q", "--payload", "x", "--every", "0"], "at least 1 second, not 0\n"),
        (["x", "--queue", "q", "--payload", "x", "--every", "soon"], "must be a number of seconds"),
        (["x", "--queue", "q", "--payload", "x", "--cron", "@daily", "--timezone", "Mars/Base"], "Mars/Base"),
        (["x", "--queue", "q", "--payload", "x", "--cron", "@daily", "--catch-up", "some"], "--catch-up"),
        (["x", "--queue", "q", "--payload", "x", "--cron", "@daily", "--overlap", "never"], "--overlap"),
        (["a b", "--queue", "q", "--payload", "x", "--cron", "@daily"], "has the character ' '"),
        (["x", "--cron", "@daily"], "say what to enqueue"),
        ([], "ID"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_and_nothing_written(run: Run, given: list[str], said: str) -> None:
    done = run("schedules", "put", *given, "--url", URL)

    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not Path("jobs.db").exists()


@pytest.mark.usefixtures("nightly")
def test_a_schedule_is_paused_resumed_and_removed(run: Run) -> None:
    assert run("schedules", "pause", "nightly", "--url", URL).out == "nightly: paused\n"
    assert stored("nightly").paused
    assert "paused" in run("schedules", "--url", URL).out

    assert run("schedules", "resume", "nightly", "--url", URL).out.startswith("nightly: next run ")
    assert not stored("nightly").paused

    assert run("schedules", "remove", "nightly", "--as", "ops", "--url", URL).out == "nightly: removed\n"
    entries = run("audit", "--url", URL, "--json").document["entries"]
    assert [each["action"] for each in entries] == ["remove schedule", "resume schedule", "pause schedule"]
    assert (entries[0]["actor"], entries[0]["target"]) == ("ops", "nightly")
    assert run("schedules", "--json", "--url", URL).document == {"schedules": []}


@pytest.mark.usefixtures("nightly")
def test_run_now_makes_a_job_and_tells_its_id(run: Run) -> None:
    before = stored("nightly")

    done = run("schedules", "run-now", "nightly", "--json", "--url", URL)

    [told] = done.document["done"]
    with windlass.connect_sync(URL) as client:
        [job] = client.jobs()
    assert told == {"id": "nightly", "job_id": job.id, "created": True}
    assert job.schedule_id == "nightly"
    assert stored("nightly").next_run_at == before.next_run_at


def test_run_now_says_that_the_last_one_is_unfinished(run: Run) -> None:
    with windlass.connect_sync(URL) as client:
        client.schedules.put("poll", timedelta(minutes=5), NewJob("q"), overlap="skip")
    run("schedules", "run-now", "poll", "--url", URL)

    assert "is unfinished, and overlap is skip" in run("schedules", "run-now", "poll", "--url", URL).out


@pytest.mark.usefixtures("nightly")
@pytest.mark.parametrize("command", ["pause", "resume", "remove", "run-now"])
def test_of_several_the_missing_ones_are_told_and_the_others_done(run: Run, command: str) -> None:
    done = run("schedules", command, "nightli", "nightly", "--url", URL)

    assert done.code == 4
    assert done.out.startswith("nightly: ")
    assert done.err == "error: no schedule 'nightli' here: did you mean 'nightly'?\n"
    told = run("schedules", command, "gone", "--json", "--url", URL)
    assert (told.code, told.document) == (4, {"done": [], "missing": ["gone"]})


def test_a_bad_id_among_several_stops_all_before_the_first(run: Run, nightly: Schedule) -> None:
    done = run("schedules", "pause", nightly.id, "a b", "--url", URL)

    assert done.code == 2
    assert not stored("nightly").paused


@pytest.mark.usefixtures("nightly")
def test_a_schedule_that_is_not_there_cannot_be_shown(run: Run) -> None:
    done = run("schedules", "show", "nightl", "--url", URL)

    assert (done.code, done.out) == (4, "")
    assert "did you mean 'nightly'?" in done.err


def test_looking_makes_no_store(run: Run) -> None:
    done = run("schedules", "--url", URL)

    assert done.code == 5
    assert done.err == f"error: there is no store at {URL} yet: look at the URL, or let the first enqueue make it\n"
    assert not Path("jobs.db").exists()


def test_a_preview_shows_what_daylight_saving_does(run: Run) -> None:
    done = run(
        *("schedules", "next", "30 2 * * *", "--timezone", "Europe/Berlin", "--count", "3"),
        *("--after", "2026-03-27T12:00:00Z"),
    )

    due = [line.split("  ")[0] for line in done.out.splitlines()[1:]]
    assert due == ["2026-03-28 02:30:00 +01:00", "2026-03-29 03:00:00 +02:00", "2026-03-30 02:30:00 +02:00"]


@pytest.mark.parametrize("words", [["*/5", "*", "*", "*", "*"], ["*/5 * * * *"], ["every", "5m"], ["every 300"]])
def test_a_rule_may_come_as_one_word_or_as_many(run: Run, words: list[str]) -> None:
    done = run("schedules", "next", *words, "--count", "2", "--after", "2026-01-01T00:00:00Z", "--json")

    told = [datetime.fromisoformat(at) for at in done.document["next"]]
    assert told == [datetime(2026, 1, 1, 0, 5, tzinfo=UTC), datetime(2026, 1, 1, 0, 10, tzinfo=UTC)]


@pytest.mark.parametrize(
    "words,said",
    [
        (["nonsense"], "nonsense"),
        (["nonsense"], "has 1 field: write second, minute"),
        (["5m"], "'5m' is no rule: write `every 5m` for an interval"),
        (["every", "blue", "moon"], "must be a number of seconds"),
        (["every", "0s"], "more than zero"),
        (["@daily", "--timezone", "Nowhere"], "Nowhere"),
        (["@daily", "--count", "0"], "--count"),
        (["@daily", "--after", "now"], "--after"),
        ([], "EXPR"),
    ],
)
def test_a_preview_of_nonsense_is_wrong_usage(run: Run, words: list[str], said: str) -> None:
    done = run("schedules", "next", *words)

    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_stored_text_reaches_no_terminal_as_it_is(run: Run) -> None:
    with windlass.connect_sync(URL) as client:
        client.schedules.put("evil", "@daily", NewJob("q", "\x1b]0;owned\x07\u202e"))

    shown = run("schedules", "show", "evil", "--url", URL)
    told = run("schedules", "show", "evil", "--url", URL, "--json")

    assert "\x1b" not in shown.out + told.out
    assert "\u202e" not in shown.out + told.out
    assert json.loads(told.out)["payload"] == "\x1b]0;owned\x07\u202e"


def test_the_commands_are_those_that_the_group_lists(run: Run) -> None:
    listed = run("schedules", "--help").out

    assert all(f"  {name} " in listed for name in schedules.commands)
    assert run("schedules", "lst", "--url", URL).err.startswith("error: no such command 'lst': did you mean 'list'?")
    assert COMMANDS["schedules"].summary in listed
