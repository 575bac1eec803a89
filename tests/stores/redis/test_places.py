"""Where the keys are, learnt from what many callers meet at once, and some of them late."""

import asyncio
from typing import Final

import pytest

from tests.stores.redis.saying import a_server_that_says
from windlass import StoreUnavailable
from windlass.core.topics import Hub
from windlass.stores.redis.line import Refused
from windlass.stores.redis.options import Options, Place
from windlass.stores.redis.places import BySentinel, InCluster, OnePlace
from windlass.stores.redis.runner import Runner
from windlass.system import SystemClock

ONE, TWO, THREE = (Place("127.0.0.1", port) for port in (7001, 7002, 7003))
CLUSTER: Final = Options("cluster", (ONE, TWO, THREE))
PREFIX: Final = "{windlass}|"
LOST: Final = ConnectionResetError("reset by peer")
SOON: Final = 10.0


def in_time() -> float:
    return asyncio.get_running_loop().time() + SOON


async def test_many_who_lose_a_node_together_go_on_to_the_next_one() -> None:
    places = InCluster(CLUSTER)
    silent = await places.find(PREFIX, in_time())

    for _ in range(3):
        places.moved(PREFIX, silent, LOST)

    assert (silent, await places.find(PREFIX, in_time())) == (ONE, TWO)


async def test_a_node_that_does_not_answer_is_the_last_to_be_asked_for_the_way_to_any_queue() -> None:
    places = InCluster(CLUSTER)
    for prefix in ("{w|a}|", "{w|b}|"):
        places.moved(prefix, ONE, Refused(f"MOVED 1 {TWO}"))

    for prefix in ("{w|a}|", "{w|b}|"):
        places.moved(prefix, TWO, LOST)
    places.moved("{w|c}|", ONE, LOST)

    assert {await places.find(f"{{w|{queue}}}|", in_time()) for queue in "abc"} == {THREE}


@pytest.mark.parametrize("host", ["", "?"])
async def test_a_node_that_does_not_know_the_host_of_another_means_its_own(host: str) -> None:
    places = InCluster(CLUSTER)

    places.moved(PREFIX, ONE, Refused(f"MOVED 3999 {host}:{TWO.port}"))

    assert await places.find(PREFIX, in_time()) == TWO


async def test_a_late_loss_does_not_make_the_way_forgotten_that_was_learnt_meanwhile() -> None:
    places = InCluster(CLUSTER)
    places.moved(PREFIX, ONE, Refused(f"MOVED 1 {THREE}"))

    places.moved(PREFIX, ONE, LOST)
    places.moved(PREFIX, ONE, Refused(f"MOVED 1 {TWO}"))

    assert await places.find(PREFIX, in_time()) == THREE


async def test_a_late_loss_of_the_old_master_does_not_make_the_new_one_forgotten() -> None:
    answers = {b"SENTINEL": b"*2\r\n$9\r\n127.0.0.1\r\n$4\r\n7002\r\n"}
    async with a_server_that_says(answers) as url:
        sentinel = Place("127.0.0.1", int(url.partition("1:")[2].partition("/")[0]))
        places = BySentinel(Options("sentinel", (sentinel,), master="jobs"))
        assert await places.find(PREFIX, in_time()) == TWO
        # who asks again hears of another one
        answers[b"SENTINEL"] = b"*2\r\n$9\r\n127.0.0.1\r\n$4\r\n7003\r\n"

        places.moved(PREFIX, ONE, LOST)
        kept = await places.find(PREFIX, in_time())
        places.moved(PREFIX, TWO, LOST)

        assert (kept, await places.find(PREFIX, in_time())) == (TWO, THREE)


async def test_one_server_stays_where_it_is_and_must_be_no_node_of_a_cluster() -> None:
    places = OnePlace(Options("single", (ONE,)))

    places.moved(PREFIX, ONE, LOST)

    assert await places.find(PREFIX, in_time()) == ONE
    with pytest.raises(StoreUnavailable, match=r"write redis\+cluster://"):
        places.moved(PREFIX, ONE, Refused(f"MOVED 1 {TWO}"))


async def test_a_refusal_that_is_not_about_the_place_moves_nothing() -> None:
    runner = Runner(CLUSTER, SystemClock(), Hub())

    learnt = runner.learn(PREFIX, ONE, Refused("NOPERM this user has no permissions to access one of the channels"))

    assert (learnt, await runner.place(PREFIX, in_time())) == (False, ONE)
