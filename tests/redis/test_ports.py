import socket

import pytest

from tests.redis import ports
from tests.redis.ports import BUS, free_port


def test_the_bus_is_below_the_ports_of_outgoing_connections_too() -> None:
    assert max(ports.PORTS) + BUS < 32_768


def test_a_port_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {free_port() for _ in range(10)}
    monkeypatch.setattr(ports, "PORTS", tuple(few))
    monkeypatch.setattr(ports, "_given", set[int]())

    assert {free_port() for _ in range(10)} == few


@pytest.mark.parametrize("above", [0, BUS])
def test_a_port_that_somebody_has_is_not_given(above: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_port(), free_port()
    monkeypatch.setattr(ports, "PORTS", (taken, free))
    with socket.create_server(("127.0.0.1", taken + above)):
        for _ in range(20):
            # each time the one or the other is tried first
            monkeypatch.setattr(ports, "_given", set[int]())
            assert free_port() == free
