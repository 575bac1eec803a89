from collections import Counter
from collections.abc import Callable
from threading import Barrier, Thread

from windlass.core.topics import ENDS, FLAGS, Hub, lock_topic, queue_topic

EMAIL = queue_topic("email")


def test_a_listener_is_rung_by_its_own_topics_alone() -> None:
    hub, rung = Hub(), Counter[str]()
    hub.listen([EMAIL], lambda: rung.update(["email"]))
    hub.listen([ENDS], lambda: rung.update(["ends"]))

    hub.ring([EMAIL, FLAGS])

    assert rung == {"email": 1}


def test_a_listener_to_several_topics_is_rung_once_for_all_of_them() -> None:
    hub, rung = Hub(), list[int]()
    hub.listen([EMAIL, ENDS], lambda: rung.append(1))

    hub.ring([EMAIL, ENDS])

    assert rung == [1]


def test_a_listener_that_stopped_is_not_rung_and_stopping_twice_is_harmless() -> None:
    hub, rung = Hub(), list[int]()
    stop = hub.listen([EMAIL], lambda: rung.append(1))

    stop()
    stop()
    hub.ring([EMAIL])

    assert rung == []
    assert hub.silent


def test_two_listeners_with_the_same_ring_stop_one_by_one() -> None:
    hub, rung = Hub(), list[int]()

    def ring() -> None:
        rung.append(1)

    stop = hub.listen([EMAIL], ring)
    hub.listen([EMAIL], ring)

    stop()
    hub.ring([EMAIL])

    assert rung == [1]


def test_a_listener_may_stop_while_it_is_rung() -> None:
    hub, stops = Hub(), list[Callable[[], None]]()

    def ring() -> None:
        stops.pop()()

    stops.append(hub.listen([EMAIL], ring))

    hub.ring([EMAIL])

    assert hub.silent


def test_everybody_is_told_when_it_is_not_known_what_changed() -> None:
    hub, rung = Hub(), set[str]()
    hub.listen([EMAIL], lambda: rung.add("email"))
    hub.listen([lock_topic("email")], lambda: rung.add("lock"))

    hub.ring_all()

    assert rung == {"email", "lock"}
    assert set(hub.topics()) == {EMAIL, lock_topic("email")}


def test_a_lock_is_no_queue_of_the_same_name() -> None:
    assert lock_topic("email") != queue_topic("email")


def test_listening_stopping_and_ringing_from_many_threads_lose_nothing() -> None:
    hub, begin = Hub(), Barrier(4)

    def listen_and_stop() -> None:
        begin.wait()
        for _ in range(300):
            hub.listen([EMAIL, ENDS], lambda: None)()
            hub.ring([EMAIL])
            hub.ring_all()

    threads = [Thread(target=listen_and_stop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert hub.silent
