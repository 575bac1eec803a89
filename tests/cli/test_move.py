"""`windlass move`."""

import asyncio

import pytest

import windlass
from tests.cli.conftest import Run
from windlass import NewJob
from windlass.client.mover import Carried, Told, move
from windlass.core.errors import StoreUnavailable
from windlass.core.moving import Moved

OLD = "sqlite:///old.db"
NEW = "sqlite:///new.db"


@pytest.fixture
def old() -> None:
    """Put three jobs of two queues in line, and run none."""

    async def fill() -> None:
        async with windlass.connect(OLD) as client:
            await client.enqueue_many([NewJob("a", b"1"), NewJob("a", b"2", delay=60), NewJob("b", b"3")])
            await client.kv.put("name", b"value")

    asyncio.run(fill())


def hold(queue: str, url: str) -> None:
    """Claim a job and never settle it."""

    async def claim() -> None:
        async with windlass.connect(url) as client:
            assert await client.claim(queue, lease=600) is not None

    asyncio.run(claim())


@pytest.mark.usefixtures("old")
def test_the_jobs_go_over_and_both_stores_know_who_did_it(run: Run) -> None:
    done = run("move", OLD, NEW, "--yes")

    assert (done.code, done.err) == (0, "")
    assert done.out == f"3 jobs, 0 schedules, 1 kv value went to {NEW}\n"
    assert {
        row["queue"]: row["pending"] + row["scheduled"]
        for row in run("queues", "--json", "--url", NEW).document["queues"]
    } == {"a": 2, "b": 1}
    for url, action in ((OLD, "move"), (NEW, "take in")):
        [entry] = run("audit", "--json", "--url", url).document["entries"]
        assert (entry["action"], entry["detail"]["jobs"]) == (action, "3")


@pytest.mark.usefixtures("old")
def test_the_old_store_says_where_the_jobs_are_until_it_is_undone(run: Run) -> None:
    run("move", OLD, NEW, "--yes")

    refused = run("enqueue", "--queue", "a", "--payload", "x", "--url", OLD)
    undone = run("move", OLD, "--undo")

    assert (refused.code, refused.err) == (5, f"error: this store was moved: connect to {NEW}\n")
    assert undone.out == f"{OLD} takes jobs again; what went to {NEW} stays there\n"
    assert run("enqueue", "--queue", "a", "--payload", "x", "--url", OLD).code == 0
    assert run("move", OLD, "--undo", "--json").document == {"undone": None}


@pytest.mark.usefixtures("old")
def test_jobs_that_still_run_are_left_out_and_named(run: Run) -> None:
    hold("b", OLD)

    done = run("move", OLD, NEW, "--yes", "--wait", "0s")

    assert done.code == 1
    assert "1 job still running and left out: 01" in done.out
    assert "call it again when they have ended" in done.err
    [left] = run("move", OLD, NEW, "--yes", "--wait", "0s", "--json").document["left"]
    assert left in done.out


@pytest.mark.usefixtures("old")
def test_one_that_is_interrupted_is_written_down_with_what_it_has_moved(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def half(*clients: windlass.Client, to: str, wait: float, told: Told) -> Carried:
        def once(carried: Carried) -> None:
            told(carried)
            if carried.jobs:
                raise StoreUnavailable("away")

        return await move(*clients, to=to, wait=wait, told=once)

    monkeypatch.setattr("windlass.cli.move.move_jobs", half)
    assert run("move", OLD, NEW, "--yes").code == 5

    for url in (OLD, NEW):
        [entry] = run("audit", "--json", "--url", url).document["entries"]
        assert entry["detail"] == {"jobs": "2", "schedules": "0", "kv": "1", "interrupted": "yes"}


@pytest.mark.usefixtures("old")
def test_a_plan_changes_nothing(run: Run) -> None:
    hold("b", OLD)

    plan = run("move", OLD, NEW, "--plan")

    assert plan.out == "2 waiting jobs of 2 queues (1 running) would go over\n"
    assert run("move", OLD, NEW, "--plan", "--json").document["queues"][0] == {"queue": "a", "waiting": 2, "running": 0}
    assert run("enqueue", "--queue", "a", "--payload", "x", "--url", OLD).code == 0


@pytest.mark.usefixtures("old")
@pytest.mark.parametrize(
    "words, code, told",
    [
        ([OLD, NEW], 2, "nobody is here to answer: give --yes, or look first with --plan"),
        ([OLD], 2, "say where to: windlass move SRC DST"),
        ([OLD, NEW, "--undo"], 2, "--undo is for one store"),
        ([OLD, OLD], 2, "a store cannot be moved to itself"),
        ([OLD, OLD, "--plan"], 2, "a store cannot be moved to itself"),
        ([OLD, "sqlite:///./old.db", "--yes"], 2, "a store cannot be moved to itself"),
        # before anybody is asked, and before anything is opened
        ([OLD, "sqlite:///./old.db"], 2, "a store cannot be moved to itself"),
        ([OLD, "sqlite:///old.db?synchronous=normal", "--plan"], 2, "a store cannot be moved to itself"),
        (["redis://localhost/0", "redis://127.0.0.1:6379"], 2, "a store cannot be moved to itself"),
        (["sqlite:///none.db", NEW, "--yes"], 5, "there is no store at sqlite:///none.db yet: look at the URL"),
        (["sqlite:///none.db", NEW, "--plan"], 5, "there is no store at sqlite:///none.db yet: look at the URL"),
        (["sqlite:///none.db", "--undo"], 5, "there is no store at sqlite:///none.db yet: look at the URL"),
        ([OLD, "memory://"], 2, "a store in memory lives with its process"),
        ([OLD, "mongo://db", "--yes"], 2, "mongo"),
    ],
)
def test_what_cannot_be_meant_moves_nothing(run: Run, words: list[str], code: int, told: str) -> None:
    refused = run("move", *words)

    assert refused.code == code
    assert told in refused.err
    assert "create=no" not in refused.err
    assert run("enqueue", "--queue", "a", "--payload", "x", "--url", OLD).code == 0


@pytest.mark.usefixtures("old")
@pytest.mark.parametrize(
    "words", [["jobs"], ["dead"], ["dead", "--group"], ["queues"], ["schedules"], ["servers"], ["stats"], ["audit"]]
)
def test_a_look_at_a_store_that_was_moved_says_where_to_look(run: Run, words: list[str]) -> None:
    run("move", OLD, NEW, "--yes")

    done = run(*words, "--url", OLD)

    assert done.code == 0
    assert "windlass enqueue" not in done.err
    assert done.err.splitlines()[0] == f"this store was moved to {NEW}: look there by --url {NEW}"
    assert "was moved" not in run(*words, "--url", NEW).err


@pytest.mark.usefixtures("old")
def test_where_a_store_was_moved_to_is_told_without_a_password(run: Run) -> None:
    async def mark() -> None:
        async with windlass.connect(OLD) as client:
            await client.store.set_moved(Moved("postgres://shop:hush@db/shop", "01"))

    asyncio.run(mark())

    told = run("jobs", "--url", OLD).err

    assert "this store was moved to postgres://shop:***@db/shop" in told
    assert "hush" not in told
