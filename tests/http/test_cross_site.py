import pytest

from windlass.http.refusal import Refusal
from windlass.http.request_headers import SAFE, check_site

UNSAFE = ["POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY", "MKCOL", "post", "Get"]
HOST = {"host": "localhost:8000"}
COOKIE = {"cookie": "windlass=x"}
TOKEN = {"authorization": "Bearer wl_x"}
JSON = {"content-type": "application/json", "content-length": "2"}
OURS = {"sec-fetch-site": "same-origin", "origin": "http://localhost:8000"}


def refused(method: str, *headers: dict[str, str]) -> bool:
    together = {name: value for each in (HOST, *headers) for name, value in each.items()}
    try:
        check_site(method, together)
    except Refusal as refusal:
        return refusal.status == 403
    return False


@pytest.mark.parametrize("method", UNSAFE)
@pytest.mark.parametrize("who", [{}, COOKIE, TOKEN, COOKIE | TOKEN])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "SAME-ORIGIN", "same-origin, none", "nonsense"])
def test_a_change_from_another_site_is_refused(method: str, who: dict[str, str], site: str) -> None:
    assert refused(method, who, JSON, {"sec-fetch-site": site})
    assert refused(method, who, {"sec-fetch-site": site, "sec-fetch-mode": "navigate"})


@pytest.mark.parametrize("method", UNSAFE)
@pytest.mark.parametrize("who", [{}, COOKIE, TOKEN])
@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.test",
        "http://localhost",
        "http://localhost:8001",
        "http://localhost:80000",
        "http://localhost:8000.evil.test",
        "http://localhost:8000/",
        "http://user@localhost:8000",
        "http://127.0.0.1:8000",
        "localhost:8000",
        "//localhost:8000",
        "file://localhost:8000",
        "chrome-extension://localhost:8000",
        "http://localhost:8000 http://evil.test",
    ],
)
def test_a_change_with_another_origin_is_refused(method: str, who: dict[str, str], origin: str) -> None:
    assert refused(method, who, JSON, {"origin": origin})
    assert refused(method, who, JSON, {"origin": origin, "sec-fetch-site": "same-origin"})


@pytest.mark.parametrize("method", UNSAFE)
def test_a_change_with_a_cookie_must_say_where_it_is_from(method: str) -> None:
    assert refused(method, COOKIE)
    assert refused(method, COOKIE, JSON)
    for each in ({"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}, {"origin": "http://localhost:8000"}):
        assert not refused(method, COOKIE, JSON, each)


@pytest.mark.parametrize(
    "body", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "", "text/json"]
)
@pytest.mark.parametrize("length", [{"content-length": "5"}, {"transfer-encoding": "chunked"}])
def test_a_body_as_forms_send_it_is_refused_with_a_cookie(body: str, length: dict[str, str]) -> None:
    assert refused("POST", COOKIE, OURS, {"content-type": body}, length)


@pytest.mark.parametrize("method", UNSAFE)
@pytest.mark.parametrize("who", [{}, TOKEN])
def test_who_is_no_browser_says_nothing_of_sites(method: str, who: dict[str, str]) -> None:
    assert not refused(method, who, JSON)


@pytest.mark.parametrize("origin", ["http://localhost:8000", "https://localhost:8000", "HTTP://LOCALHOST:8000"])
def test_a_page_of_our_own_may_change_things(origin: str) -> None:
    assert not refused("POST", COOKIE, OURS, {"origin": origin}, JSON)
    assert not refused("DELETE", COOKIE, OURS, {"origin": origin})


@pytest.mark.parametrize("method", sorted(SAFE))
@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_another_site_may_link_to_a_page_but_load_nothing(method: str, site: str) -> None:
    assert not refused(method, {"sec-fetch-site": site, "sec-fetch-mode": "navigate"})
    for mode in ("no-cors", "cors", "websocket", ""):
        assert refused(method, {"sec-fetch-site": site, "sec-fetch-mode": mode})
    assert refused(method, {"sec-fetch-site": site})


@pytest.mark.parametrize("method", sorted(SAFE))
@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_pages_of_our_own_may_load_what_they_need(method: str, site: str) -> None:
    assert not refused(method, COOKIE, {"sec-fetch-site": site, "sec-fetch-mode": "cors"})
    assert not refused(method, COOKIE)


def test_a_safe_method_is_one_of_three() -> None:
    assert {"GET", "HEAD", "OPTIONS"} == SAFE
