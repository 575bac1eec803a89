"""Requests that a page of another site lets a browser send are refused: they carry what its user may do, not the page.

Browsers say where a request comes from by `Sec-Fetch-Site`, and older ones by `Origin`. Who sends neither is no
browser, and has nothing that a page could make use of, unless it sends a cookie.
"""

from collections.abc import Mapping
from typing import Final

from windlass.http.refusal import Refusal
from windlass.http.request_headers import announces_body

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""

_OF_OUR_OWN: Final = ("same-origin", "none")


def check_site(method: str, headers: Mapping[str, str]) -> None:
    """Refuse what comes from another site: all that could change something, and all but links to follow."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if method in SAFE:
        if site is not None and site not in _OF_OUR_OWN and headers.get("sec-fetch-mode") != "navigate":
            raise _refusal("it is asked for by a page of another site")
        return
    if site is not None and site not in _OF_OUR_OWN:
        raise _refusal("it is sent by a page of another site")
    if origin is not None and not _same(origin, headers.get("host", "")):
        raise _refusal("its Origin is not this host")
    if _by_cookie(headers):
        if site is None and origin is None:
            raise _refusal("it has a cookie, and neither Sec-Fetch-Site nor Origin")
        if announces_body(headers) and not is_json(headers):
            raise _refusal("it has a cookie, and a body as forms send it")


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether the body is said to be JSON, which no form of a page can send."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _by_cookie(headers: Mapping[str, str]) -> bool:
    return "cookie" in headers and "authorization" not in headers


def _same(origin: str, host: str) -> bool:
    # not the scheme: a proxy may end TLS in front of this process
    scheme, mark, name = origin.lower().partition("://")
    return scheme in ("http", "https") and bool(mark) and name == host.lower()


def _refusal(why: str) -> Refusal:
    message = f"this request is refused because {why}: send it from a page of this host, or with a token and no cookie"
    return Refusal(403, "cross_site", message)
