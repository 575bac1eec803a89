"""The campaigns on Redis, in small; see `test_campaigns`."""

from pathlib import Path

import pytest

import windlass
from proofs.failover import sentinel_failover
from proofs.fleet import fleet, redis_everysec, terminations
from proofs.lost_replies import lost_replies
from proofs.readers.redis import RedisReader
from proofs.report import Report, Verdict
from tests.redis.server import new_url
from windlass import NewJob
from windlass.stores.redis.requests import Ask, pack


def assert_holds(report: Report) -> None:
    assert report.verdict is Verdict.HOLDS, report.text()


def test_a_fleet_gets_over_dead_servers_connections_and_databases(tmp_path: Path) -> None:
    plan = fleet.Plan(
        jobs=1_200,
        servers=2,
        producers=2,
        kills=2,
        standstills=1,
        cuts=6,
        crashes=2,
        longest_down=0.5,
        ahead=300,
        lease=4.0,
        back_within=15.0,
    )

    assert_holds(fleet.prove_on_redis(tmp_path, plan))


@pytest.mark.on_request  # half a minute and more; the whole of it is a proof
@pytest.mark.parametrize("spread", [False, True])
def test_a_fleet_gets_over_the_dead_master_of_a_cluster(tmp_path: Path, *, spread: bool) -> None:
    plan = fleet.Plan(
        jobs=2_000,
        queues=("default", "mail", "reports"),
        servers=2,
        producers=2,
        kills=3,
        standstills=1,
        cuts=6,
        crashes=2,
        longest_down=0.5,
        ahead=400,
        lease=4.0,
        back_within=15.0,
    )

    assert_holds(fleet.prove_on_a_cluster(tmp_path, plan, spread=spread))


@pytest.mark.on_request  # half a minute and more; the whole of it is a proof
def test_a_database_that_is_gone_for_a_while_costs_no_rate(tmp_path: Path) -> None:
    plan = fleet.Plan(
        jobs=1_500,
        servers=2,
        producers=2,
        kills=0,
        cuts=0,
        crashes=2,
        stops_too=True,
        steady=True,
        longest_down=2.0,
        ahead=300,
        back_within=15.0,
    )

    assert_holds(fleet.prove_restarts_on_redis(tmp_path, plan))


def test_ended_connections_cost_nothing(tmp_path: Path) -> None:
    plan = terminations.Plan(calm=1, seconds=3, per_second=250, job=0.2, least=0.05)

    assert_holds(terminations.prove_on_redis(tmp_path, plan))


@pytest.mark.on_request  # twenty seconds and more; the whole of it is a proof
def test_a_machine_that_stops_loses_the_last_moment_and_nothing_else(tmp_path: Path) -> None:
    plan = redis_everysec.Plan(jobs=600, stops=2, soonest=0.7, servers=2, producers=2, oldest=10.0, back_within=15.0)

    assert_holds(redis_everysec.prove(tmp_path, plan))


@pytest.mark.on_request  # twenty seconds and more; the whole of it is a proof
def test_a_replica_takes_over_and_nothing_that_it_has_is_lost(tmp_path: Path) -> None:
    load = sentinel_failover.Load(jobs_each=30, servers=1, producers=1, pause=0.5, back_within=15.0)

    assert_holds(sentinel_failover.prove(tmp_path, sentinel_failover.Plan(waited=1, unwaited=1, oldest=5.0, load=load)))


def test_a_lost_reply_makes_nothing_twice(tmp_path: Path) -> None:
    assert_holds(lost_replies.prove_on_redis(tmp_path, lost_replies.Plan(replies=40)))


def test_without_receipts_lost_replies_do_things_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(ask: Ask) -> bytes:
        """Never say that it was asked for before."""
        return pack({name: value for name, value in ask.items() if name != "again"})

    monkeypatch.setattr("windlass.stores.redis.runner.pack", forgetful)

    report = lost_replies.prove_on_redis(tmp_path, lost_replies.Plan(replies=40))

    assert report.verdict is Verdict.BROKEN
    assert "enqueue one: created: False" in report.text()


@pytest.mark.parametrize(
    "key, complaint", [("ready|q|", "pending kept 2, counted 3"), ("jobs|q", "kept 2"), ("queues", "not among")]
)
def test_the_reader_notices_a_job_that_is_not_where_it_belongs(key: str, complaint: str) -> None:
    with new_url() as url:
        with windlass.connect_sync(url) as client:
            client.enqueue_many([NewJob("q") for _ in range(3)])
        reader = RedisReader(url)
        assert (reader.counts_off(), reader.integrity(), reader.unfinished(), reader.totals()) == ([], [], 3, (3, 0))

        with reader.reading() as direct:
            if key == "queues":
                direct.srem(reader.key(key), "q")
            else:
                direct.zremrangebyrank(reader.key(key), 0, 0)

        assert complaint in " ".join(reader.counts_off())


def test_the_reader_notices_what_belongs_to_no_job() -> None:
    with new_url() as url:
        with windlass.connect_sync(url) as client:
            client.enqueue_many([NewJob("q"), NewJob("q")])
            claim = client.claim("q", lease=0)
            assert claim is not None
            client.nack(claim, "why")
        reader = RedisReader(url)

        with reader.reading() as direct:
            direct.delete(reader.key(f"job|{claim.job.id}"))

        said = " ".join(reader.integrity())
        assert f"history of {claim.job.id}, which is not there" in said
        assert f"{claim.job.id} among all of q" in said
