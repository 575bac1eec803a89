"""Store URLs: taken apart and checked. No message ever shows more of one than its scheme, which holds no password."""

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit

from windlass.core.errors import InvalidURL

FORMS: Final = (
    "a store URL is memory://, memory://name, sqlite:///relative.db, sqlite:////absolute.db, "
    "postgres://user:password@host/database, redis://user:password@host/0, redis+sentinel://host1,host2/master/0, "
    "redis+cluster://host1,host2, slatedb+s3://bucket/prefix, slatedb+file:///folder, slatedb+memory://name or "
    "https://host"
)
_SHAPE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+._-]*)://")
_DATABASE_AND_DRIVER: Final = re.compile(
    r"(postgres|postgresql)\+(?:asyncpg|psycopg|psycopg2|psycopg_async|pg8000)|(sqlite)\+(?:pysqlite|aiosqlite)"
)
"""The scheme of a SQLAlchemy URL that names a driver, as in postgresql+asyncpg. The stores choose their own driver."""


@dataclass(frozen=True, slots=True)
class StoreURL:
    """The parts of a store URL; `host` holds a user and a password too, `options` are its query parameters."""

    scheme: str
    host: str = field(repr=False)
    path: str
    options: Mapping[str, str] = field(repr=False)
    is_cut: bool = False
    """Whether an "@" stands among the options: perhaps a password has a "?", and what follows it is part of that."""

    def check_options(self, known: Mapping[str, Collection[str] | None]) -> None:
        """Refuse an option that this store does not have, or a value that it does not take; None is for any text."""
        for name, value in self.options.items():
            if name not in known:
                self._refuse_option(name, known)
            values = known[name]
            if self.is_cut and not (value if values is None else value in values):
                self._refuse_unseen()
            if values is None and not value:
                message = f"option {name!r} of the {self.scheme}:// URL is empty: give it a value, or leave it out"
                raise InvalidURL(message)
            if values is not None and value not in values:
                message = f"{self.scheme}:// takes {name}={'|'.join(values)}, not {name}={value[:40]!r}"
                raise InvalidURL(message)

    def with_option(self, url: str, name: str, value: str) -> str:
        """Return `url`, whose parts these are, with this option, unless it says something of it already."""
        if name in self.options:
            return url
        mark = "&" if self.options else "" if url.endswith("?") else "?"
        return f"{url}{mark}{name}={value}"

    def _refuse_option(self, name: str, known: Collection[str]) -> NoReturn:
        if self.is_cut:
            self._refuse_unseen()
        taken = f"it takes {', '.join(known)}" if known else "it takes none"
        message = f"{self.scheme}:// has no option {name[:40]!r}{_meant(name, known) or f': {taken}'}"
        raise InvalidURL(message)

    def _refuse_unseen(self) -> NoReturn:
        message = (
            f"an option of the {self.scheme}:// URL cannot be read, and an '@' follows the '?': write '%3F' for a '?' "
            "in a user or a password, and '%40' for an '@' in an option"
        )
        raise InvalidURL(message)


def parse(url: object, schemes: Collection[str]) -> StoreURL:
    """Take `url` apart; refuse what is no URL or has a scheme that is not among `schemes`."""
    if not isinstance(url, str):
        message = f"a store URL is a string, not {type(url).__name__}: {FORMS}"
        raise InvalidURL(message)
    shape = _SHAPE.match(url)
    if shape is None:
        message = f"this is no store URL, it has no scheme://: {FORMS}"
        raise InvalidURL(message)
    scheme = shape[1].lower()
    if of_sqlalchemy := _DATABASE_AND_DRIVER.fullmatch(scheme):
        scheme = of_sqlalchemy[1] or of_sqlalchemy[2]
    if scheme not in schemes:
        message = f"no store has the scheme {scheme[:40]!r}{_meant(scheme, schemes)}: {FORMS}"
        raise InvalidURL(message)
    try:
        parts = urlsplit(f"{scheme}{url[shape.end(1) :]}")
    except ValueError:
        message = f"the part after {scheme}:// cannot be read: {FORMS}"
        raise InvalidURL(message) from None
    if parts.fragment:
        message = f"a {scheme}:// URL has no part after '#': write '%23' for a '#' in a name"
        raise InvalidURL(message)
    return StoreURL(scheme, parts.netloc, unquote(parts.path), _options(scheme, parts.query), "@" in parts.query)


def _options(scheme: str, query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        message = f"the options of the {scheme}:// URL are not of the form ?name=value&name=value"
        raise InvalidURL(message) from None
    options = dict(pairs)
    if len(options) < len(pairs):
        message = f"an option of the {scheme}:// URL is given twice: give each once"
        raise InvalidURL(message)
    return options


def _meant(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f", did you mean {near[0]!r}?" if near else ""
