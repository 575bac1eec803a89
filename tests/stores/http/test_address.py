"""What an http:// URL says, and what it must not hold."""

import pytest

from windlass.core.errors import InvalidURL, InvalidValue
from windlass.store_url import parse
from windlass.stores.http.address import read_address
from windlass.stores.http.headers import usual_headers
from windlass.stores.http.options import Options


def read(url: str, token: str | None = None) -> Options:
    parts = parse(url, ["http", "https"])
    return read_address(parts.scheme, parts.host, parts.path, parts.options, token=token)


def test_a_host_is_enough() -> None:
    assert read("http://jobs.example") == Options(
        host="jobs.example", port=80, prefix="", tls=False, timeout=10.0, connections=8, token=None
    )
    assert (read("https://jobs.example").port, read("https://jobs.example").tls) == (443, True)


def test_all_that_can_be_said_is_understood() -> None:
    options = read(
        "https://h:8443/team/jobs/?tls_ca=ca.pem&tls_cert=c.pem&tls_key=k.pem&timeout=2.5&connections=3", "abc"
    )

    assert options == Options(
        host="h",
        port=8443,
        prefix="/team/jobs",
        tls=True,
        tls_ca="ca.pem",
        tls_cert="c.pem",
        tls_key="k.pem",
        timeout=2.5,
        connections=3,
        token="abc",  # noqa: S106 - one of a test
    )


@pytest.mark.parametrize(
    "url, where, host",
    [
        ("http://h", "http://h", "h"),
        ("http://h:80/", "http://h", "h"),
        ("http://h:8080/a b", "http://h:8080/a%20b", "h:8080"),
        ("https://h:443", "https://h", "h"),
        ("http://[::1]:8080", "http://[::1]:8080", "[::1]:8080"),
        ("http://[fe80::1%25eth0]:81", "http://[fe80::1]:81", "[fe80::1]:81"),
        ("http://höst.example", "http://xn--hst-sna.example", "xn--hst-sna.example"),
    ],
)
def test_a_server_is_named_as_requests_name_it(url: str, where: str, host: str) -> None:
    options = read(url)

    assert options.where == f"the server at {where}"
    assert f"host: {host}\r\n".encode() in usual_headers(options)


def test_a_zone_is_kept_for_connecting() -> None:
    assert read("http://[fe80::1%25eth0]").host == "fe80::1%eth0"


def test_what_stands_before_the_api_can_break_no_line_of_a_request() -> None:
    assert read("http://h/a%0d%0aX: y%3Fz").prefix == "/a%0D%0AX:%20y%3Fz"


@pytest.mark.parametrize(
    "url",
    [
        "http://tim:s3cret@h",
        "http://s3cret@h",
        "http://h?token=s3cret",
        "http://h?access_token=s3cret",
        "http://h?password=s3cret&timeout=1",
    ],
)
def test_a_secret_in_the_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidURL, match=r"connect\(token=\.\.\.\) or .* WINDLASS_TOKEN") as told:
        read(url)

    assert "s3cret" not in str(told.value)
    assert "tim" not in str(told.value).replace("timeout", "")


def test_a_token_is_sent_and_never_shown() -> None:
    options = read("http://h", "s3cret-_~+/.==\n")

    assert b"authorization: Bearer s3cret-_~+/.==\r\n" in usual_headers(options)
    assert "s3cret" not in repr(options) + str(options) + options.where
    assert "a token" in repr(options)
    assert b"authorization" not in usual_headers(read("http://h"))


@pytest.mark.parametrize("token", ["", " \n", "two words", "line\r\nX: y", "tökén", "=abc", "x" * 5000])
def test_what_can_be_no_token_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidValue, match="WINDLASS_TOKEN") as told:
        read("http://h", token)

    assert not token.strip() or token not in str(told.value)


@pytest.mark.parametrize(
    "url, said",
    [
        ("http://", "the host of the http:// URL cannot be read"),
        ("http://a,b", "host of the http"),
        ("http://:80", "host of the http"),
        ("http://h:0", "host of the http"),
        ("http://h:70000", "host of the http"),
        ("http://a..b", "host of the http"),
        ("http://a%20b", "host of the http"),
        ("http://a%0d%0ab", "host of the http"),
        (f"http://{'x' * 64}", "host of the http"),
        ("http://h/api/v1", "leave /api/v1 out"),
        ("http://h/team/api/v1/", "leave /api/v1 out"),
        (f"http://h/{'x' * 600}", "longer than 500"),
        ("http://h?tls_ca=x", "write https://"),
        ("https://h?tls_cert=x", "go together"),
        ("https://h?tls_key=x", "go together"),
        ("http://h?timeout=0", "timeout=0.1 to 60"),
        ("http://h?timeout=61", "timeout=0.1 to 60"),
        ("http://h?timeout=soon", "not 'soon'"),
        ("https://h?connections=0", "https:// takes connections=1 to 1000"),
        ("http://h?connections=1001", "connections=1 to 1000"),
        ("http://h?connections=²", "connections=1 to 1000"),
    ],
)
def test_what_cannot_be_meant_is_refused(url: str, said: str) -> None:
    with pytest.raises(InvalidURL, match=said):
        read(url)
