"""Every command that looks, and those that change many jobs, on every store."""

import pytest

import windlass
from tests.cli.conftest import Run
from tests.cli.given_jobs import fill
from tests.each_store import STORES, new_url
from windlass import JobFilter

# a store in memory is gone with its process, and a command has one of its own
KEPT = [store for store in STORES if store in {"sqlite", "postgres", "redis", "slatedb+file", "http+memory"}]


@pytest.mark.parametrize("store", KEPT)
def test_jobs_are_seen_and_steered(run: Run, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_url(store) as url:
        monkeypatch.setenv("WINDLASS_URL", url)
        given = fill(url)

        listed = run("jobs", "--json").document["jobs"]
        assert [each["id"] for each in listed] == [
            given.later,
            given.pending,
            given.running,
            given.dead,
            given.succeeded,
        ]
        assert [each["id"] for each in run("dead", "--json").document["jobs"]] == [given.dead]
        assert run("dead", "--group", "--json").document["groups"][0]["error"] == "ValueError"
        shown = run("jobs", "show", given.running, "--json").document
        assert (shown["progress"]["done"], len(shown["log"]), len(shown["history"])) == (30, 2, 1)
        assert run("queues", "--json").document["queues"][0]["running"] == 1
        assert run("stats", "--json").document["totals"]["enqueued"] == 5
        assert run("servers").code == 0

        assert run("jobs", "retry", "--error", "kaputt", "--yes").out == "1 job pending again\n"
        assert run("jobs", "cancel", "--queue", "mail", "--yes", "--json").document["changed"] == 4
        assert run("jobs", "delete", "--state", "cancelled", "--yes").out == "3 jobs deleted\n"
        assert run("queues", "pause", "mail").code == 0
        actions = [each["action"] for each in run("audit", "--json").document["entries"]]
        assert set(actions) == {"cancel", "delete", "pause", "retry"}
        with windlass.connect_sync(url) as client:
            assert [job.id for job in client.jobs(JobFilter(queue="mail"))] == [given.running]
