import pytest

from windlass.kit.spelt_host import spelt_host


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "localhost.", "127.0.0.1"])
def test_this_machine_has_one_spelling(host: str) -> None:
    assert spelt_host(host) == "127.0.0.1"


@pytest.mark.parametrize("host", ["db.example", "::1", "/run/Postgres", ""])
def test_what_has_one_spelling_stays_as_it_is(host: str) -> None:
    assert spelt_host(host) == host
