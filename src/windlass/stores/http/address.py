"""From the parts of a URL and a token to the options of the store; no message shows a token, a user or a password."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from windlass.core.errors import InvalidURL, InvalidValue
from windlass.kit.timeout_option import timeout_of
from windlass.stores.http.options import Options

MOST_CONNECTIONS: Final = 1000
LONGEST_PREFIX: Final = 500
LONGEST_TOKEN: Final = 4096
_HOST: Final = re.compile(
    r"(?:\[(?P<six>[0-9A-Za-z:.%_-]+)\]|(?P<name>[^\[\]:,]+))(?::(?P<port>[0-9]{1,5}))?", re.ASCII
)
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)
_SECRETS: Final = frozenset({"token", "access_token", "api_key", "key", "user", "username", "password", "secret"})
_HOW: Final = "give the token by connect(token=...) or in the environment as WINDLASS_TOKEN"


class _Place(NamedTuple):
    host: str
    port: int


def read_address(scheme: str, host: str, path: str, given: Mapping[str, str], *, token: str | None = None) -> Options:
    """Return what the URL `scheme://host/path?given` says; options that are none of this store's are not looked at.

    Whoever calls it refuses those afterwards, since what is said here of a secret in the URL helps more.
    """
    _check_secrets(scheme, host, given)
    _check_use(scheme, given)
    tls = scheme == "https"
    place = _place(scheme, host, 443 if tls else 80)
    return Options(
        host=place.host,
        port=place.port,
        prefix=_prefix(scheme, path),
        tls=tls,
        tls_ca=given.get("tls_ca"),
        tls_cert=given.get("tls_cert"),
        tls_key=given.get("tls_key"),
        timeout=timeout_of(scheme, given.get("timeout", "10")),
        connections=_connections(scheme, given.get("connections", "8")),
        token=None if token is None else _token(token),
    )


def _check_secrets(scheme: str, host: str, given: Mapping[str, str]) -> None:
    if "@" in host:
        message = f"the {scheme}:// URL holds a user or a password, and URLs end up in logs: take it out, and {_HOW}"
        raise InvalidURL(message)
    for name in given:
        if name.lower() in _SECRETS:
            message = f"the {scheme}:// URL holds {name!r}, and URLs end up in logs: take it out, and {_HOW}"
            raise InvalidURL(message)


def _check_use(scheme: str, given: Mapping[str, str]) -> None:
    """Refuse what would have no effect: whoever names a certificate would send a token for all to read."""
    for name in given:
        if name.startswith("tls_") and scheme != "https":
            message = f"{name} is for encrypted connections: write https://"
            raise InvalidURL(message)
    if ("tls_cert" in given) != ("tls_key" in given):
        message = f"tls_cert and tls_key of the {scheme}:// URL go together: name the file in both if it holds both"
        raise InvalidURL(message)


def _place(scheme: str, host: str, port: int) -> _Place:
    found = _HOST.fullmatch(host)
    if found is not None:
        place = _Place(_spelt(unquote(found["six"] or found["name"])), int(found["port"] or port))
        if place.host and 0 < place.port < 1 << 16:
            return place
    message = f"the host of the {scheme}:// URL cannot be read: write {scheme}://host, host:8080 or [::1]:8080"
    raise InvalidURL(message)


def _spelt(host: str) -> str:
    """Return a host as resolvers and the header Host take it; nothing where neither does."""
    labels = host.removesuffix(".").split(".")
    if not host.isprintable() or set(host) & set(' /\\"<>@?#') or not all(labels):
        return ""
    try:
        return host if ":" in host else host.encode("idna").decode()
    except UnicodeError:
        return ""


def _prefix(scheme: str, path: str) -> str:
    prefix = quote(path.rstrip("/"), safe="/-._~!$&'()*+,;=:@")
    if prefix.endswith("/api/v1"):
        message = f"leave /api/v1 out of the {scheme}:// URL: only what stands before it belongs there"
        raise InvalidURL(message)
    if len(prefix) > LONGEST_PREFIX:
        message = f"the path of the {scheme}:// URL is longer than {LONGEST_PREFIX} characters: shorten it"
        raise InvalidURL(message)
    return prefix


def _connections(scheme: str, text: str) -> int:
    if not (text.isdecimal() and text.isascii() and 1 <= int(text[:9]) <= MOST_CONNECTIONS):
        message = f"{scheme}:// takes connections=1 to {MOST_CONNECTIONS}, not {text[:40]!r}"
        raise InvalidURL(message)
    return int(text)


def _token(token: str) -> str:
    # one that was read from a file mostly ends with a line break
    stripped = token.strip()
    if len(stripped) > LONGEST_TOKEN or _TOKEN.fullmatch(stripped) is None:
        message = (
            "the token cannot be one: it is empty, too long, or has other characters than ASCII letters, digits and "
            f"._~+/-=: {_HOW} as it was shown when it was made"
        )
        raise InvalidValue(message)
    return stripped
