"""The text of a file of tokens, read and written: TOML, a table `[[token]]` for each."""

import difflib
import json
import math
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias, cast

from windlass.api.roles import Role
from windlass.core.errors import InvalidValue
from windlass.core.names import check_name, shortened
from windlass.http.tokens import KnownToken

Table: TypeAlias = Mapping[str, object]

MOST_TOKENS: Final = 1_000
"""Each request is compared with all of them."""
HIGHEST_RATE: Final = 1_000_000
HEAD: Final = "# Tokens of `windlass serve`, written by `windlass token`, which keeps no other comments.\n"

_HASH: Final = re.compile(r"[0-9a-f]{64}")


def read_tokens(text: str) -> tuple[KnownToken, ...]:
    """Return the tokens in a text; `InvalidValue` says what is wrong, and never shows a value that may be secret."""
    try:
        document: Table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"it is no TOML: {error}"
        raise InvalidValue(message) from None
    _check_keys(document, ("token",), "the file")
    tables = document.get("token", [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in cast("list[object]", tables)):
        message = "a token is a table: write [[token]] above its lines"
        raise InvalidValue(message)
    tokens = tuple(_read_token(each, place) for place, each in enumerate(cast("list[Table]", tables), 1))
    check_together(tokens)
    return tokens


def check_together(tokens: Sequence[KnownToken]) -> None:
    """Refuse tokens that cannot be told apart, and more than can be compared with each request."""
    names, hashes = [each.name for each in tokens], [each.sha256 for each in tokens]
    if len(tokens) > MOST_TOKENS:
        message = f"there are {len(tokens):,} tokens, and {MOST_TOKENS:,} may be: remove those that nobody uses"
        raise InvalidValue(message)
    if (name := _repeated(names)) is not None:
        message = f"two tokens are called {name!r}: give each a name of its own"
        raise InvalidValue(message)
    if (sha256 := _repeated(hashes)) is not None:
        first, second = [each.name for each in tokens if each.sha256 == sha256][:2]
        message = f"{first!r} and {second!r} are the same token: remove one"
        raise InvalidValue(message)


def written_tokens(tokens: Sequence[KnownToken]) -> str:
    """Return the text that `read_tokens` reads as these tokens."""
    return HEAD + "".join("\n".join(["", "[[token]]", *_lines(each), ""]) for each in tokens)


def read_role(value: object) -> Role:
    """Return the role of this name."""
    names = [role.value for role in Role]
    if not isinstance(value, str) or value not in names:
        near = difflib.get_close_matches(str(value)[:40], names, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
        message = f"there is no role {shortened(repr(value), 40)}: {advice}"
        raise InvalidValue(message)
    return Role(value)


def read_rate(value: object) -> float:
    """Return a number of requests a second."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= HIGHEST_RATE:
        message = f"the rate is a number of requests a second, above 0 and up to {HIGHEST_RATE:,}"
        raise InvalidValue(message)
    return float(value)


def _read_token(table: Table, place: int) -> KnownToken:
    if "name" not in table:
        message = f"token {place} has no name: give it one"
        raise InvalidValue(message)
    name = check_name(table["name"], "token")
    _check_keys(table, _READ, f"token {name!r}")
    try:
        read = {key: _READ[key](value) for key, value in table.items()}
        return KnownToken(
            name=name,
            roles=cast("frozenset[Role]", _needed(read, "roles")),
            sha256=cast("str", _needed(read, "sha256")),
            queues=cast("frozenset[str] | None", read.get("queues")),
            rate=cast("float | None", read.get("rate")),
            created_at=cast("datetime | None", read.get("created_at")),
        )
    except InvalidValue as error:
        message = f"token {name!r}: {error}"
        raise InvalidValue(message) from None


def _check_keys(table: Table, known: Collection[str], where: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"it may have {', '.join(known)}"
            message = f"{where} has {shortened(repr(key), 40)}, which means nothing: {advice}"
            raise InvalidValue(message)


def _needed(read: Table, key: str) -> object:
    if key not in read:
        message = f"it has no {key}"
        raise InvalidValue(message)
    return read[key]


def _name(value: object) -> str:
    return check_name(value, "token")


def _roles(value: object) -> frozenset[Role]:
    return frozenset(map(read_role, _listed(value, "roles")))


def _queues(value: object) -> frozenset[str]:
    return frozenset(check_name(each, "queue") for each in _listed(value, "queues"))


def _listed(value: object, what: str) -> list[object]:
    if not isinstance(value, list) or not value:
        message = f'{what} is a list with something in it, such as ["{"produce" if what == "roles" else "email"}"]'
        raise InvalidValue(message)
    return cast("list[object]", value)


def _sha256(value: object) -> str:
    # the value is not shown: it may be the token itself
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        message = (
            "sha256 is the hash of the token in 64 hexadecimal digits, not the token: `windlass token new` writes it"
        )
        raise InvalidValue(message)
    return value


def _created_at(value: object) -> datetime:
    if not isinstance(value, datetime) or value.utcoffset() is None:
        message = "created_at is a time with its offset, such as 2026-01-31T09:00:00Z"
        raise InvalidValue(message)
    return value


_READ: Final[Mapping[str, Callable[[object], object]]] = {
    "name": _name,
    "roles": _roles,
    "queues": _queues,
    "rate": read_rate,
    "created_at": _created_at,
    "sha256": _sha256,
}
"""How each line of a token is read."""


def _repeated(texts: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            return text
        seen.add(text)
    return None


def _lines(token: KnownToken) -> list[str]:
    # names have no character that TOML would write in another way than JSON does
    lines = [f"name = {json.dumps(token.name)}", f"roles = {json.dumps(sorted(token.roles, key=list(Role).index))}"]
    if token.queues is not None:
        lines.append(f"queues = {json.dumps(sorted(token.queues))}")
    if token.rate is not None:
        whole = math.floor(token.rate)
        lines.append(f"rate = {whole if whole == token.rate else repr(token.rate)}")
    if token.created_at is not None:
        lines.append(f"created_at = {token.created_at.astimezone(UTC).isoformat(timespec='seconds')}")
    return [*lines, f"sha256 = {json.dumps(token.sha256)}"]
