"""What the faulty S3 does to calls, as a client sees it that asks once."""

import socket
from collections import Counter
from collections.abc import Iterator
from http.client import IncompleteRead, RemoteDisconnected

import pytest

from proofs.slatedb.faulty_s3 import Done, FaultyS3
from proofs.slatedb.s3_faults import BURST, NONE, SKEWED, WITH_A_BODY, WITH_EVERY_CALL, Fault, Faults, Plan
from tests.redis.ports import free_port
from tests.slatedb import s3
from tests.slatedb.asking import Told, ask, ask_within
from tests.slatedb.weed import Weed

BODY = b"a body of some length"


@pytest.fixture
def faulty() -> Iterator[FaultyS3]:
    s3.running().bucket.objects.clear()
    with FaultyS3(s3.running().endpoint, NONE) as faulty:
        yield faulty


def only(fault: Fault, *, slow_close: float = 0.0) -> Faults:
    return Faults(share=1.0, kinds=(fault,), slow=0.01, late=0.01, stall=0.01, slow_close=slow_close)


def put(faulty: FaultyS3, **headers: str) -> Told:
    return ask(faulty.endpoint, "PUT", f"/{s3.BUCKET}/a", BODY, **headers)


def get(faulty: FaultyS3) -> Told:
    return ask(faulty.endpoint, "GET", f"/{s3.BUCKET}/a")


def read_all(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


def is_there() -> bool:
    return "a" in s3.running().bucket.objects


def test_what_passes_is_done_and_counted(faulty: FaultyS3) -> None:
    assert (put(faulty).status, get(faulty).body) == (200, BODY)
    assert ask(faulty.endpoint, "HEAD", f"/{s3.BUCKET}/a").headers["content-length"] == str(len(BODY))
    assert ask(faulty.endpoint, "GET", f"/{s3.BUCKET}?list-type=2").status == 200

    names = ("PutObject", "GetObject", "HeadObject", "ListObjectsV2")
    assert faulty.calls == Counter(Done(name, "passed") for name in names)
    assert faulty.faulty == 0


@pytest.mark.parametrize("fault", ["500", "503", "429"])
def test_what_is_refused_is_not_done(faulty: FaultyS3, fault: Fault) -> None:
    faulty.change(only(fault))

    assert put(faulty).status == int(fault)

    assert not is_there()
    assert faulty.calls == {Done("PutObject", fault): 1}
    assert faulty.faulty == 1


@pytest.mark.parametrize("fault", ["lost answer", "late answer"])
def test_what_loses_its_answer_is_done(faulty: FaultyS3, fault: Fault) -> None:
    faulty.change(only(fault))

    with pytest.raises(RemoteDisconnected):
        put(faulty)

    assert is_there()


def test_a_clock_that_is_said_to_be_wrong_is_refused(faulty: FaultyS3) -> None:
    faulty.change(only("skewed"))

    told = put(faulty)

    assert (told.status, b"RequestTimeTooSkewed" in told.body) == (403, True)
    assert not is_there()


def test_what_is_held_is_done_and_never_answered(faulty: FaultyS3) -> None:
    faulty.change(only("held"))

    with pytest.raises(TimeoutError):
        ask_within(0.2, faulty.endpoint, "PUT", f"/{s3.BUCKET}/a", BODY)

    assert is_there()
    assert faulty.calls == {Done("PutObject", "held"): 1}


def test_a_stale_list_is_the_one_that_was_given_last(faulty: FaultyS3) -> None:
    names = f"/{s3.BUCKET}?list-type=2"
    faulty.change(only("stale list"))
    first = ask(faulty.endpoint, "GET", names).body
    put(faulty)

    assert ask(faulty.endpoint, "GET", names).body == first
    faulty.change(NONE)
    assert ask(faulty.endpoint, "GET", names).body != first


def test_bursts_and_wrong_clocks_come_in_turns_as_often_as_they_are_planned() -> None:
    plan = Plan(Faults(share=0.0, burst_every=100), seed=1)

    planned = [plan.fault("PutObject") for _ in range(399)]

    assert planned[99:119] == planned[299:319] == ["burst"] * BURST
    assert planned[199:204] == ["skewed"] * SKEWED
    assert sum(each is not None for each in planned) == 2 * BURST + SKEWED


@pytest.mark.parametrize("fault", ["reset", "stall"])
def test_what_is_reset_is_not_done(faulty: FaultyS3, fault: Fault) -> None:
    faulty.change(only(fault))

    with pytest.raises(ConnectionResetError):
        put(faulty)

    assert not is_there()


def test_what_is_slow_is_done_and_answered(faulty: FaultyS3) -> None:
    faulty.change(only("slow"))

    assert put(faulty).status == 200

    assert faulty.calls == {Done("PutObject", "slow"): 1}


def test_what_is_repeated_is_refused_although_it_was_done(faulty: FaultyS3) -> None:
    faulty.change(only("repeated"))

    assert put(faulty, if_none_match="*").status == 412

    assert is_there()


def test_what_is_truncated_ends_in_the_middle(faulty: FaultyS3) -> None:
    put(faulty)
    faulty.change(only("truncated"))

    with pytest.raises(IncompleteRead) as cut:
        get(faulty)

    assert cut.value.partial == BODY[: len(BODY) // 2]
    # what has no body is not truncated
    assert put(faulty).status == 200


def test_only_the_calls_that_are_named_are_faulty(faulty: FaultyS3) -> None:
    faulty.change(Faults(share=1.0, kinds=("500",), only={"GetObject"}))

    assert (put(faulty).status, get(faulty).status) == (200, 500)


@pytest.mark.parametrize(
    "line", [Faults(share=0.0, latency=0.01, jitter=0.01), Faults(share=0.0, bytes_per_second=10_000)]
)
def test_all_passes_on_a_bad_line(faulty: FaultyS3, line: Faults) -> None:
    faulty.change(line)

    assert (put(faulty).status, get(faulty).body) == (200, BODY)


def test_a_slow_close_is_announced(faulty: FaultyS3) -> None:
    faulty.change(only("503", slow_close=0.01))

    assert put(faulty).headers["connection"] == "close"


def test_who_has_gone_away_refuses_all_and_comes_back_where_it_was(faulty: FaultyS3) -> None:
    put(faulty)
    with socket.create_connection(("127.0.0.1", faulty.port)) as idle:
        # answered once: the connection is in use
        idle.sendall(b"GET /a/b HTTP/1.1\r\nhost: a\r\n\r\n")
        idle.recv(1)
        faulty.go_away()
        with pytest.raises(ConnectionResetError):
            read_all(idle)

    with pytest.raises(ConnectionRefusedError):
        get(faulty)

    faulty.come_back()
    assert get(faulty).body == BODY


def test_where_no_server_is_behind_connections_end() -> None:
    with FaultyS3(f"http://127.0.0.1:{free_port()}", NONE) as faulty:
        with pytest.raises(RemoteDisconnected):
            put(faulty)

        assert faulty.calls == {Done("PutObject", "no server"): 1}


def test_a_server_that_looks_at_signatures_takes_what_was_signed_for_the_proxy() -> None:
    with Weed() as weed, FaultyS3(weed.endpoint, NONE) as faulty:
        assert put(faulty).status == 200


def test_of_ten_calls_of_a_kind_the_share_is_faulty(faulty: FaultyS3) -> None:
    faulty.change(Faults(share=0.3, kinds=("500",)))

    for _ in range(20):
        put(faulty)
        get(faulty)

    assert faulty.calls[Done("PutObject", "500")] == faulty.calls[Done("GetObject", "500")] == 6
    assert faulty.faulty == 12


def test_a_plan_depends_on_its_seed_alone() -> None:
    def told(seed: int) -> list[Fault | None]:
        plan = Plan(Faults(), seed)
        return [plan.fault(call) for _ in range(200) for call in ("GetObject", "PutObject")]

    assert told(1) == told(1)
    assert told(1) != told(2)


def test_no_fault_is_spared_in_a_short_campaign() -> None:
    plan = Plan(Faults(share=0.3), 1)

    told = Counter(plan.fault("GetObject") for _ in range(100))

    assert told[None] == 70
    assert {fault: told[fault] for fault in (*WITH_EVERY_CALL, *WITH_A_BODY)} == dict.fromkeys(
        (*WITH_EVERY_CALL, *WITH_A_BODY), 3
    )


def test_a_share_that_is_no_number_of_tenths_comes_out_all_the_same() -> None:
    plan = Plan(Faults(share=0.15), 1)

    faulty = sum(plan.fault("PutObject") is not None for _ in range(10_000))

    assert 1_400 < faulty < 1_600


def test_an_error_of_the_proxy_itself_is_told() -> None:
    def speak_nonsense() -> None:
        with (
            FaultyS3(s3.running().endpoint, NONE) as faulty,
            socket.create_connection(("127.0.0.1", faulty.port)) as client,
        ):
            client.sendall(b"nonsense\r\n\r\n")
            read_all(client)

    with pytest.raises(ValueError, match="unpack"):
        speak_nonsense()
