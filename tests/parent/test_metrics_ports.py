import importlib.util
import socket

import pytest

from windlass.core.errors import InvalidValue, MissingExtra
from windlass.parent.metrics_ports import open_ports


def test_each_process_has_a_port_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    ports = open_ports(("127.0.0.1", 0), 2)

    numbers = [port.getsockname()[1] for port in ports]
    for port in ports:
        port.close()

    assert len({*numbers}) == 2
    assert caplog.messages == [
        f"metrics of process {place}: http://127.0.0.1:{number}/metrics" for place, number in enumerate(numbers, 1)
    ]


def after_a_free_one() -> socket.socket:
    """A port that is taken, next to one that is not."""
    while True:
        taken = socket.create_server(("127.0.0.1", 0))
        try:
            socket.create_server(("127.0.0.1", taken.getsockname()[1] - 1)).close()
        except OSError:
            taken.close()
        else:
            return taken


def test_when_one_port_cannot_be_opened_none_is() -> None:
    with after_a_free_one() as taken:
        last = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot serve metrics on 127.0.0.1:{last}: Address already in use; give"):
            open_ports(("127.0.0.1", last - 1), 2)

        socket.create_server(("127.0.0.1", last - 1)).close()


@pytest.mark.parametrize("host", ["no such host", "203.0.113.7"])
def test_a_host_that_is_not_here_is_named(host: str) -> None:
    with pytest.raises(OSError, match=f"cannot serve metrics on {host}:0: "):
        open_ports((host, 0), 1)


def test_ports_past_the_last_one_are_refused() -> None:
    with pytest.raises(InvalidValue, match="metrics of 3 processes need as many ports from 65534 on"):
        open_ports(("127.0.0.1", 65_534), 3)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", _not_found)

    with pytest.raises(MissingExtra, match=r"--metrics needs the extra 'metrics': pip install 'windlass\[metrics\]'"):
        open_ports(("127.0.0.1", 0), 1)
    assert open_ports(None, 4) == ()


def _not_found(name: str) -> None:
    assert name == "prometheus_client"
