"""What there is: queues, servers, counts, and what people did."""

import asyncio
import signal
import socket
from datetime import UTC, datetime, timedelta

import pytest

import windlass
from tests.cli.conftest import URL, Run
from tests.cli.given_jobs import Given, fill
from windlass import NewJob
from windlass.cli.sparkline import TICKS, sparkline
from windlass.core.errors import StoreUnavailable
from windlass.core.looks import ServerRecord


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    monkeypatch.setenv("WINDLASS_URL", URL)
    return fill(URL)


@pytest.mark.usefixtures("given")
def test_queues_are_listed_with_what_they_hold(run: Run) -> None:
    listed = run("queues").out.splitlines()
    told = {each["queue"]: each for each in run("queues", "list", "--json").document["queues"]}

    assert [line.split()[:7] for line in listed[1:]] == [
        ["mail", "open", "1", "1", "1", "0", "1"],
        ["reports", "open", "0", "0", "0", "1", "0"],
    ]
    assert (told["mail"]["pending"], told["mail"]["totals"]["enqueued"]) == (1, 4)
    assert told["mail"]["oldest_age"] >= 0
    assert told["reports"]["oldest_waiting"] is None


@pytest.mark.usefixtures("given")
def test_queues_are_paused_and_resumed_by_name_and_the_audit_says_so(run: Run) -> None:
    assert run("queues", "pause", "mail", "reports").out == "mail: paused\nreports: paused\n"
    assert "paused" in run("queues").out
    assert run("queues", "resume", "mail", "--as", "ops", "--json").document == {"resumed": ["mail"]}

    with windlass.connect_sync(URL) as client:
        assert not client.stats("mail").paused
        assert client.stats("reports").paused
    entries = run("audit", "--json").document["entries"]
    assert [(each["action"], each["target"]) for each in entries] == [
        ("resume", "mail"),
        ("pause", "reports"),
        ("pause", "mail"),
    ]
    assert (entries[0]["actor"], entries[1]["actor"].partition("@")[2]) == ("ops", socket.gethostname())
    cut = run("audit", "--limit", "1")
    assert "ops" in cut.out
    assert "there are older entries: see up to 10,000 with --limit" in cut.err
    assert run("audit", "--limit", "2", "--json").document["more"] is True
    assert run("audit", "--limit", "3", "--json").document["more"] is False


@pytest.mark.usefixtures("given")
def test_a_queue_that_is_not_there_is_paused_only_on_request_and_none_before_it(run: Run) -> None:
    done = run("queues", "pause", "mail", "reprots")

    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("error: no queue 'reprots' here: did you mean 'reports'?; --yes pauses it")
    with windlass.connect_sync(URL) as client:
        assert not client.stats("mail").paused
    assert run("queues", "pause", "future", "--yes").code == 0
    assert run("queues", "resume", "futur").code == 4


def test_an_empty_store_says_how_things_come_into_it(run: Run) -> None:
    windlass.connect_sync(URL).open()

    said = {name: run(name, "--url", URL) for name in ("jobs", "dead", "queues", "servers", "audit")}

    assert all((done.code, done.out) == (0, "") for done in said.values())
    assert "windlass enqueue" in said["jobs"].err
    assert "windlass worker" in said["servers"].err


def test_servers_are_listed_live_and_gone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    record = ServerRecord("a1", "alpha", "box", 7, "1.0", now - timedelta(hours=2), now, ("mail", "reports"), ("send",))
    with windlass.connect_sync(URL) as client:
        client.run(lambda inner: inner.store.beat(record))

    live = run("servers", "--url", URL, "--json").document["servers"]
    line = run("servers", "--url", URL).out.splitlines()[1].split()
    monkeypatch.setenv("WINDLASS_DEAD_AFTER", "1ms")
    gone = run("servers", "--url", URL)

    assert (live[0]["name"], live[0]["state"], live[0]["queues"]) == ("alpha", "live", ["mail", "reports"])
    assert line[:6] == ["alpha", "box", "7", "live", "0", "mail,"]
    assert "gone" in gone.out


def test_a_server_that_stops_is_listed_with_what_it_still_runs(run: Run) -> None:
    now = datetime.now(UTC)
    record = ServerRecord("a1", "alpha", "box", 7, "1.0", now, now, ("mail",), running=2, details={"stopping": "yes"})
    with windlass.connect_sync(URL) as client:
        client.run(lambda inner: inner.store.beat(record))

    [server] = run("servers", "--url", URL, "--json").document["servers"]
    line = run("servers", "--url", URL).out.splitlines()[1].split()

    assert (server["state"], server["running"]) == ("stopping", 2)
    assert line[:5] == ["alpha", "box", "7", "stopping", "2"]


@pytest.mark.usefixtures("given")
def test_stats_are_of_all_queues_or_of_one(run: Run) -> None:
    told = run("stats", "--json").document
    mail = run("stats", "--queue", "mail", "--json").document

    assert (told["pending"], told["dead"], told["totals"]["enqueued"]) == (1, 1, 5)
    assert (mail["queue"], mail["succeeded"], mail["totals"]["enqueued"]) == ("mail", 0, 4)
    assert len(told["minutes"]) == 60
    assert sum(each["enqueued"] for each in mail["minutes"]) == 4
    line = next(line for line in run("stats").out.splitlines() if line.startswith("enqueued "))
    assert (len(line.split()[1]), line.split()[2]) == (60, "5")


def test_a_line_of_bars_shows_what_is_more_than_none() -> None:
    assert sparkline([0, 0]) == TICKS[0] * 2
    assert sparkline([0, 1, 1000]) == TICKS[0] + TICKS[1] + TICKS[7]
    assert sparkline([]) == ""


def test_a_store_that_is_away_is_one_line(run: Run) -> None:
    for words in (["jobs"], ["dead", "--group"], ["queues", "pause", "mail"], ["stats"], ["jobs", "retry", "--all"]):
        done = run(*words, "--url", "redis://127.0.0.1:1?timeout=0.2")

        assert (done.code, done.out) == (5, "")
        assert done.err.count("\n") == 1


def test_a_bench_measures_and_leaves_an_empty_queue(run: Run) -> None:
    with windlass.connect_sync(URL) as client:
        client.enqueue_many([NewJob("mail"), NewJob("windlass-bench")])

    done = run("bench", "--seconds", "0.1", "--url", URL, "--json")

    names = ["enqueue", "enqueue_many", "claim and ack", "pick-up"]
    assert [each["name"] for each in done.document["measured"]] == names
    assert all(each["jobs"] > 0 for each in done.document["measured"])
    with windlass.connect_sync(URL) as client:
        assert [job.queue for job in client.jobs()] == ["mail"]


def test_a_bench_without_a_store_takes_one_that_is_gone_in_the_end(run: Run) -> None:
    done = run("bench", "--seconds", "0.1")

    assert done.code == 0
    assert "no benchmark of record" in done.err
    assert "jobs/s" in done.out


def test_an_interrupted_bench_ends_what_waits_before_it_empties_its_queue(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    async def claim(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("claimed no more")

    async def rescue(*_: object, **__: object) -> None:
        steps.append("emptied")

    monkeypatch.setattr(windlass.Client, "claim", claim)
    monkeypatch.setattr(windlass.Client, "rescue", rescue)

    done = run("bench", "--seconds", "0.1")

    assert (done.code, done.out, done.err) == (130, "", "")
    assert steps[-2:] == ["claimed no more", "emptied"]


def test_a_bench_whose_store_goes_away_says_so_in_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ack(*_: object, **__: object) -> None:
        raise StoreUnavailable("the store is away")

    monkeypatch.setattr(windlass.Client, "ack", ack)

    done = run("bench", "--seconds", "0.1")

    assert (done.code, done.out, done.err) == (5, "", "error: the store is away\n")


def test_the_help_of_a_bench_tells_what_it_leaves_behind(run: Run) -> None:
    with windlass.connect_sync(URL) as client:
        client.enqueue("mail")

    run("bench", "--seconds", "0.1", "--url", URL)

    left = {row["queue"]: row for row in run("queues", "--url", URL, "--json").document["queues"]}["windlass-bench"]
    assert sum(left[state] for state in ("pending", "scheduled", "running", "succeeded", "dead", "cancelled")) == 0
    assert left["totals"]["enqueued"] > 0
    assert "The queue stays in `windlass queues`" in " ".join(run("bench", "--help").out.split())


@pytest.mark.parametrize(
    "words", [["stats"], ["enqueue", "--queue", "mail", "--payload", "x"], ["migrate"]], ids=lambda words: words[0]
)
def test_a_folder_that_is_missing_is_named_by_who_looks_and_by_who_writes(run: Run, words: list[str]) -> None:
    done = run(*words, "--url", "sqlite:///no/such/jobs.db")

    assert done.code == 5
    assert "no/such for jobs.db: make it first, or look at the URL" in done.err
    assert "first enqueue" not in done.err
