"""From the parts of a URL to the options of the store; no message shows more of a URL than options without secrets."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from windlass.core.errors import InvalidURL
from windlass.kit.timeout_option import timeout_of
from windlass.stores.redis.options import PREFIX, Form, Options, Place

MOST_CONNECTIONS: Final = 1000
MOST_REPLICAS: Final = 100
_FORMS: Final[Mapping[str, Form]] = {
    "redis": "single",
    "rediss": "single",
    "redis+sentinel": "sentinel",
    "redis+cluster": "cluster",
}
_PORTS: Final[Mapping[Form, int]] = {"single": 6379, "sentinel": 26379, "cluster": 6379}
_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9A-Za-z:.%_-]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}", re.ASCII)
_DATABASE: Final = re.compile(r"[0-9]{1,5}", re.ASCII)


def read_address(scheme: str, host: str, path: str, given: Mapping[str, str]) -> Options:
    """Return what the URL `scheme://host/path?given` says; `host` may hold a user, a password and several hosts."""
    form = _FORMS[scheme]
    _check_use(scheme, given)
    login, _, hosts = host.rpartition("@")
    user, colon, password = login.partition(":")
    master, database = _path(form, path)
    return Options(
        form=form,
        places=_places(scheme, form, hosts),
        database=database,
        master=master,
        user=unquote(user) or None,
        password=unquote(password) if colon else None,
        tls=_is_encrypted(scheme, given),
        tls_ca=given.get("tls_ca"),
        tls_cert=given.get("tls_cert"),
        tls_key=given.get("tls_key"),
        sentinel_user=given.get("sentinel_user"),
        sentinel_password=given.get("sentinel_password"),
        prefix=_prefix(given.get("prefix", PREFIX)),
        spread=given.get("spread") == "queues",
        create=given.get("create") != "no",
        timeout=timeout_of("redis", given.get("timeout", "10")),
        connections=_whole("connections", given.get("connections", "8"), 1, MOST_CONNECTIONS),
        wait=_whole("wait", given.get("wait", "0"), 0, MOST_REPLICAS),
        evicting=given.get("evicting") == "allowed",
    )


def _check_use(scheme: str, given: Mapping[str, str]) -> None:
    """Refuse what would have no effect: whoever names a certificate would send passwords for all to read."""
    for name in given:
        if name.startswith("tls_") and not _is_encrypted(scheme, given):
            message = f"{name} is for encrypted connections: write rediss://, or tls=yes beside it"
            raise InvalidURL(message)
        if name.startswith("sentinel_") and scheme != "redis+sentinel":
            message = f"{name} is for redis+sentinel://host1,host2/master, not for {scheme}://"
            raise InvalidURL(message)
    if ("tls_cert" in given) != ("tls_key" in given):
        message = f"tls_cert and tls_key of the {scheme}:// URL go together: name the file in both if it holds both"
        raise InvalidURL(message)


def _is_encrypted(scheme: str, given: Mapping[str, str]) -> bool:
    return scheme == "rediss" or given.get("tls") == "yes"


def _places(scheme: str, form: Form, hosts: str) -> tuple[Place, ...]:
    found = [_HOST.fullmatch(part) for part in (hosts or "localhost").split(",")]
    places = [
        Place(unquote(each["six"] or each["name"]), int(each["port"] or _PORTS[form]))
        for each in found
        if each is not None
    ]
    if len(places) < len(found) or not all(map(_can_be, places)):
        message = (
            f"the host of the {scheme}:// URL cannot be read: write host, host:6379, [::1]:6379, or several parted by "
            "commas; in a user or a password '%2F' for '/', '%3A' for ':', '%23' for '#' and '%40' for '@'"
        )
        raise InvalidURL(message)
    if form == "single" and len(places) > 1:
        message = f"{scheme}:// is one server: several are redis+sentinel://h1,h2/master or redis+cluster://h1,h2"
        raise InvalidURL(message)
    return tuple(places)


def _can_be(place: Place) -> bool:
    """Whether there can be a server at a place: what no resolver takes is refused before anybody waits for it."""
    labels = place.host.removesuffix(".").split(".")
    spelt = place.host.isprintable() and " " not in place.host and all(0 < len(label) < 64 for label in labels)  # noqa: PLR2004
    return spelt and 0 < place.port < 1 << 16


def _path(form: Form, path: str) -> tuple[str | None, int]:
    """Return the master's name and the number of the database."""
    parts = [part for part in path.split("/") if part]
    master = None
    if form == "sentinel":
        if not parts:
            message = (
                "redis+sentinel:// needs the master's name: redis+sentinel://host1,host2/master, or /master/database"
            )
            raise InvalidURL(message)
        master = parts.pop(0)
    if form == "cluster" and parts not in ([], ["0"]):
        message = (
            "a Cluster has no databases: leave out what follows the hosts of redis+cluster://; in a password '%2F' "
            "stands for '/'"
        )
        raise InvalidURL(message)
    if len(parts) > 1 or not all(map(_DATABASE.fullmatch, parts)):
        message = "the database of a redis:// URL is a number: redis://host/0; in a password '%2F' stands for '/'"
        raise InvalidURL(message)
    return master, int(parts[0]) if parts else 0


def _prefix(name: str) -> str:
    if _PREFIX.fullmatch(name) is None:
        message = f"redis:// takes as prefix 1 to 64 of ASCII letters, digits and _ . : -, not {name[:70]!r}"
        raise InvalidURL(message)
    return name


def _whole(name: str, text: str, least: int, most: int) -> int:
    if not (text.isdecimal() and text.isascii() and least <= int(text[:9]) <= most):
        message = f"redis:// takes {name}={least} to {most}, not {text[:40]!r}"
        raise InvalidURL(message)
    return int(text)
