"""From what was found to HTML: the one place where text becomes a page, and the one that escapes it."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from windlass.client.spoken import amount, counted, length
from windlass.core.duration import EPOCH
from windlass.core.escaped import escaped
from windlass.core.names import shortened
from windlass.http.dashboard.seen import Looker
from windlass.http.dashboard.static_files import StaticFiles
from windlass.http.dashboard.view import Facts
from windlass.version import VERSION

_KEPT: Final = "\n\t"
"""What a page shows as it is, of all that has no shape of its own."""
_HALVES: Final = "backslashreplace"
"""What becomes in an address of half a character, which UTF-8 has no bytes for."""
_LONGEST: Final = 300
"""Characters of a name that are shown: all that a client lets pass, and not whatever a store can hold."""


class Frame(NamedTuple):
    """What stands around the facts of a page."""

    root: str
    """The path that the app is mounted at."""
    page: str
    """The name of the page, and of its template."""
    title: str
    looker: Looker
    who: str | None = None
    """The name of whoever looks; None where nobody has to log in."""
    live: str | None = None
    """Where its stream is."""
    logs_out: bool = False
    """Whether they logged in here, and can log out."""


class Rendering:
    """Makes pages and parts of pages. Whatever a template is given is escaped, and shown where it would be obeyed."""

    def __init__(self, static: StaticFiles, store: str, *, logs_in: bool) -> None:
        """Use these files; `store` is shown as the name of what is looked at. `logs_in` says that browsers do."""
        self.logs_in: Final = logs_in
        self._environment = _environment()
        self._around = {"static": static.path, "store": store}

    def page(self, frame: Frame, facts: Facts) -> bytes:
        """Return a whole page."""
        return self._environment.get_template(f"{frame.page}.html").render(self._known(frame, facts)).encode()

    def regions(self, frame: Frame, facts: Facts, names: Sequence[str]) -> dict[str, str]:
        """Return parts of a page, by their names, and the counts that every page has."""
        template = self._environment.get_template(f"{frame.page}.html")
        context = template.new_context(dict(self._known(frame, facts)))
        made = {name: "".join(template.blocks[name](context)) for name in names}
        counts = self._environment.get_template("counts.html").render(self._known(frame, facts))
        return {"counts": counts, **made}

    def _known(self, frame: Frame, facts: Facts) -> Facts:
        return {**self._around, **facts, "frame": frame, "root": frame.root, "looker": frame.looker}


@cache
def _environment() -> Environment:
    """Return what reads the templates, one for the process: they are compiled once, however many dashboards it has."""
    made = Environment(
        loader=PackageLoader("windlass.http.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = made.filters
    filters |= {
        "number": _number,
        "json": _json,
        "iso": _iso,
        "utc": _utc,
        "length": _length,
        "bytes": _bytes,
        "amount": amount,
        "counted": counted,
        "segment": _segment,
        "short": _short,
    }
    known: dict[str, Any] = made.globals
    # the first moment there is stands in for a time that cannot be read
    known |= {"query": _query, "version": VERSION, "no_time": EPOCH}
    # a part of a page is made without what stands above it in its template, so these are known everywhere
    known["ui"] = made.get_template("ui.html").module
    return made


def _finalized(value: object) -> object:
    """Return what a template is about to write, with all that a browser would obey, not show, written out."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    return escaped(f"{value:.12g}" if isinstance(value, float) else str(value), keep=_KEPT)


def _short(text: str, most: int = _LONGEST) -> str:
    return shortened(text, most)


def _number(value: int) -> str:
    return f"{value:,}"


def _json(value: object) -> str:
    """Return plain values as JSON: text like any other, to be escaped where it is written."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _length(seconds: float | timedelta) -> str:
    return length(seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds))


def _bytes(size: int) -> str:
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":  # noqa: PLR2004 - what a unit has of the one below
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError


def _segment(text: str) -> str:
    """Return text as one part of a path."""
    return quote(text, safe="", errors=_HALVES)


def _query(given: Mapping[str, Any] | msgspec.Struct | None = None, /, **changed: object) -> str:
    """Return the query of a URL, `?` and all: what was given, with what is changed; None leaves out."""
    known = msgspec.structs.asdict(given) if isinstance(given, msgspec.Struct) else given or {}
    wanted = {**known, **changed}
    chosen = {name: _text(value) for name, value in wanted.items() if value is not None}
    return f"?{urlencode(chosen, errors=_HALVES)}" if chosen else ""


def _text(value: object) -> str:
    return _iso(value) if isinstance(value, datetime) else str(value)
