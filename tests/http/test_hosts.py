import pytest

from windlass.core.errors import InvalidValue
from windlass.http.refusal import Refusal
from windlass.http.request_headers import Hosts

HOSTS = Hosts("10.0.0.7", ["jobs.example.com", "2001:DB8::1"])


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost:8000",
        "127.0.0.1",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:65535",
        "10.0.0.7:8000",
        "jobs.example.com",
        "JOBS.example.com:443",
        "[2001:db8::1]:80",
    ],
)
def test_a_name_of_this_process_is_taken_with_any_port(host: str) -> None:
    for _ in range(2):
        HOSTS.check(host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        " ",
        "evil.test",
        "evil.test:8000",
        "localhost.",
        "localhost.evil.test",
        "evil.localhost",
        "xlocalhost",
        "localhost:evil",
        "localhost:",
        "localhost:80:80",
        "localhost:999999",
        "localhost:8000/",
        "localhost/",
        "localhost#",
        "localhost?",
        "localhost\\",
        "localhost ",
        " localhost",
        "localhost\t",
        "localhost\n",
        "localhost\r\nX: y",
        "localhost\0",
        "localhost,evil.test",
        "localhost, localhost",
        "user@localhost",
        "localhost@evil.test",
        "http://localhost",
        "127.1",
        "127.0.0.1.",
        "0x7f000001",
        "2130706433",
        "0.0.0.0",  # noqa: S104
        "::1",
        "[::1",
        "::1]",
        "[::1]evil",
        "[::1%eth0]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "10.0.0.70",
        "10.0.0.8",
        "example.com",
        "jobs.example.com.",
        "jobs.example.com.evil.test",
        "jobs-example.com",
        "jobsxexample.com",
        "ｌocalhost",  # noqa: RUF001 - looks like it
        "loc\xadalhost",
        "*",
        "a" * 10_000,
    ],
)
def test_no_other_name_is_taken(host: str | None) -> None:
    with pytest.raises(Refusal) as refused:
        HOSTS.check(host)

    assert refused.value.status == 421
    assert len(str(refused.value)) < 700
    assert str(refused.value).isprintable()


def test_a_refusal_says_what_to_set() -> None:
    with pytest.raises(Refusal, match=r"evil\.test is no name of this process") as refused:
        HOSTS.check("Evil.test:8000")

    assert "start it with --allow-host evil.test," in str(refused.value)
    assert 'allowed_hosts=["evil.test"] where it is mounted' in str(refused.value)


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "[::]", ""])  # noqa: S104
def test_an_address_that_stands_for_all_is_no_name(bind: str) -> None:
    hosts = Hosts(bind)

    hosts.check("localhost")
    for host in ("0.0.0.0", "[::]", "10.0.0.7", ""):  # noqa: S104
        with pytest.raises(Refusal):
            hosts.check(host)


@pytest.mark.parametrize(
    "name", ["", "*", "*.example.com", "http://jobs.example.com", "jobs.example.com:80", "a b", "a/b", "é.test"]
)
def test_what_is_no_name_cannot_be_allowed(name: str) -> None:
    with pytest.raises(InvalidValue, match="is no name of a host"):
        Hosts("127.0.0.1", [name])


def test_what_is_remembered_of_hosts_is_bounded() -> None:
    hosts = Hosts("127.0.0.1")

    for port in range(1_000):
        hosts.check(f"localhost:{port}")

    assert sum(map(len, vars(hosts).values())) < 50
