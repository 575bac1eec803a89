from collections.abc import Iterator

import pytest
from redis.exceptions import AskError, MovedError, TryAgainError

from tests.redis.asking import connected
from tests.redis.private_cluster import PrivateCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[PrivateCluster]:
    with PrivateCluster() as cluster:
        yield cluster


@pytest.mark.slow
def test_keys_are_where_their_slot_is(cluster: PrivateCluster) -> None:
    slot = cluster.slot_of("{moved}|a")

    cluster.master_of(slot).ask("SET", "{moved}|a", "1")

    with pytest.raises(MovedError) as moved:
        cluster.another_master(slot).ask("GET", "{moved}|a")
    assert (moved.value.slot_id, moved.value.port) == (slot, cluster.master_of(slot).port)


def test_who_had_a_slot_tells_where_it_is_now(cluster: PrivateCluster) -> None:
    slot = cluster.slot_of("{a slot}")
    had_it, has_it = cluster.master_of(slot), cluster.another_master(slot)
    for number in range(3):
        had_it.ask("SET", f"{{a slot}}|{number}", number)

    cluster.move_slot(slot, has_it)

    assert cluster.master_of(slot) is has_it
    assert [has_it.ask("GET", f"{{a slot}}|{number}") for number in range(3)] == ["0", "1", "2"]
    with pytest.raises(MovedError) as moved:
        had_it.ask("GET", "{a slot}|0")
    assert moved.value.port == has_it.port


def test_a_slot_whose_move_has_begun_asks_for_what_it_no_longer_has(cluster: PrivateCluster) -> None:
    slot = cluster.slot_of("{open}")
    has_it, gets_it = cluster.master_of(slot), cluster.another_master(slot)
    for name in ("stays", "goes"):
        has_it.ask("SET", f"{{open}}|{name}", name)

    cluster.begin_move(slot, gets_it)
    cluster.move_keys(slot, gets_it, "{open}|goes")

    assert has_it.ask("GET", "{open}|stays") == "stays"
    with pytest.raises(AskError) as asked:
        has_it.ask("GET", "{open}|goes")
    with pytest.raises(TryAgainError):
        has_it.ask("MGET", "{open}|stays", "{open}|goes")
    assert asked.value.port == gets_it.port
    with connected(gets_it.url) as client:
        pipeline = client.pipeline(transaction=False)
        pipeline.execute_command("ASKING")
        pipeline.get("{open}|goes")
        assert pipeline.execute()[-1] == "goes"
    cluster.move_keys(slot, gets_it)
    cluster.end_move(slot, gets_it)
    assert gets_it.ask("MGET", "{open}|stays", "{open}|goes") == ["stays", "goes"]
