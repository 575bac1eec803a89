"""The forms that the value of a setting can have: how each is read from text, checked and shown."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol, cast

from windlass.config.masked import masked
from windlass.core.duration import ZERO, duration
from windlass.core.errors import InvalidURL, InvalidValue
from windlass.core.names import check_name

MOST: Final = 2**31 - 1

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_LAST_PORT: Final = 65_535
_LOOPBACK: Final = "127.0.0.1"
_DURATION: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))\s*(ms|s|m|h|d)?")
_FILE: Final = re.compile(r"[\w./-]+\.(db3?|sqlite3?)")
"""The path of a file that SQLite would write."""
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SHOWN_IN: Final = {name: timedelta(seconds=_SECONDS[name]) for name in ("d", "h", "m", "s", "ms")}
_SWITCH: Final = {
    **dict.fromkeys(("on", "yes", "true", "1"), True),
    **dict.fromkeys(("off", "no", "false", "0"), False),
}


class Form(Protocol):
    """What the value of a setting looks like; `what` names the setting in the errors, which are all `InvalidValue`."""

    def read(self, text: str, what: str) -> object:
        """Return the value that `text` says; `check` takes it and `show` writes it again."""
        ...

    def check(self, value: object, what: str) -> object:
        """Return `value` as it is kept, a duration as a `timedelta`; refuse what cannot be one."""
        ...

    def show(self, value: object) -> str:
        """Return `value` for people to see, without what is secret in it."""
        ...


@dataclass(frozen=True, slots=True)
class OrNone:
    """Another form, or none at all."""

    form: Form

    def read(self, text: str, what: str) -> object:
        """Take `none` for None."""
        return None if text.lower() == "none" else self.form.read(text, what)

    def check(self, value: object, what: str) -> object:
        """Let None pass."""
        return None if value is None else self.form.check(value, what)

    def show(self, value: object) -> str:
        """Write None as it is read."""
        return "none" if value is None else self.form.show(value)


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer."""

    least: int = 0
    most: int = MOST

    def read(self, text: str, what: str) -> object:
        """Take digits."""
        if not _WHOLE.fullmatch(text):
            message = f"{what} must be an integer, not {text[:40]!r}"
            raise InvalidValue(message)
        return self.check(int(text), what)

    def check(self, value: object, what: str) -> object:
        """Refuse what is out of bounds."""
        if not isinstance(value, int) or isinstance(value, bool):
            message = f"{what} must be an integer, not {value!r}"
            raise InvalidValue(message)
        if not self.least <= value <= self.most:
            shown = f"{value:,}" if abs(value) < 2**64 else "a far larger number"
            message = f"{what} must be from {self.least:,} to {self.most:,}, not {shown}"
            raise InvalidValue(message)
        return value

    def show(self, value: object) -> str:
        """Write digits."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Span:
    """A duration; `zero` says whether it may be none at all."""

    zero: bool = True

    def read(self, text: str, what: str) -> object:
        """Take `30`, which means seconds, or a number with its unit."""
        found = _DURATION.fullmatch(text.lower())
        if found is None:
            message = f"{what} must be a number of seconds, or like 250ms, 30s, 5m, 2h or 7d, not {text[:40]!r}"
            raise InvalidValue(message)
        return self.check(float(found[1]) * _SECONDS[found[2] or "s"], what)

    def check(self, value: object, what: str) -> object:
        """Take a `timedelta` or a number of seconds."""
        # what is neither is refused there, by name
        found = duration(cast("timedelta | float", value), what)
        if found == ZERO and not self.zero:
            message = f"{what} must be more than zero"
            raise InvalidValue(message)
        return found

    def show(self, value: object) -> str:
        """Write it in the largest unit that leaves no fraction."""
        span = cast("timedelta", value)
        if not span:
            return "0s"
        for unit, length in _SHOWN_IN.items():
            if not span % length:
                return f"{span // length}{unit}"
        return f"{span.total_seconds():.6f}".rstrip("0") + "s"


@dataclass(frozen=True, slots=True)
class Switch:
    """On or off."""

    def read(self, text: str, what: str) -> object:
        """Take any of the usual words."""
        if (found := _SWITCH.get(text.lower())) is None:
            message = f"{what} must be on or off (or yes, no, true, false, 1, 0), not {text[:40]!r}"
            raise InvalidValue(message)
        return found

    def check(self, value: object, what: str) -> object:
        """Refuse what is only true by chance, such as a list with something in it."""
        if not isinstance(value, bool):
            message = f"{what} must be true or false, not {value!r}"
            raise InvalidValue(message)
        return value

    def show(self, value: object) -> str:
        """Write on or off."""
        return "on" if value else "off"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, text: str, what: str) -> object:
        """Take a word, also in capitals."""
        return self.check(text.lower(), what)

    def check(self, value: object, what: str) -> object:
        """Refuse every other word."""
        if value not in self.words:
            message = f"{what} must be one of {', '.join(map(repr, self.words))}, not {value!r}"
            raise InvalidValue(message)
        return value

    def show(self, value: object) -> str:
        """Write the word."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Name:
    """A name, in the letters that all names have."""

    def read(self, text: str, what: str) -> object:
        """Take it as it is."""
        return self.check(text, what)

    def check(self, value: object, what: str) -> object:
        """Refuse a character that no name may have."""
        return check_name(value, what)

    def show(self, value: object) -> str:
        """Write it as it is."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Text:
    """Any text; what it means is known where it is used."""

    def read(self, text: str, what: str) -> object:
        """Take it as it is."""
        return self.check(text, what)

    def check(self, value: object, what: str) -> object:
        """Refuse what is no text, or says nothing."""
        if not isinstance(value, str) or not value.strip():
            message = f"{what} must be a text with something in it, not {value!r}"
            raise InvalidValue(message)
        return value

    def show(self, value: object) -> str:
        """Write it as it is."""
        return str(value)


@dataclass(frozen=True, slots=True)
class URL:
    """Where a store is, or a store of the program's own; what the parts of a URL mean is known where it is opened."""

    def read(self, text: str, what: str) -> object:
        """Take it as it is; no error shows it, since it may hold a password, unless it is but the name of a file."""
        if "://" not in text:
            meant = f", did you mean sqlite:///{text}?" if _FILE.fullmatch(text) else ""
            message = f"{what} must be a store URL, such as sqlite:///jobs.db: it has no scheme://{meant}"
            raise InvalidURL(message)
        return text

    def check(self, value: object, what: str) -> object:
        """Let a store pass."""
        if isinstance(value, str):
            return self.read(value, what)
        if not callable(getattr(value, "claim", None)):
            message = f"{what} must be a store URL, such as sqlite:///jobs.db, or a store, not {type(value).__name__}"
            raise InvalidValue(message)
        return value

    def show(self, value: object) -> str:
        """Hide the password."""
        return masked(value) if isinstance(value, str) else type(value).__name__


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen, kept as host and port: the loopback unless a host is named."""

    def read(self, text: str, what: str) -> object:
        """Take `9400`, `0.0.0.0:9400` or `[::1]:9400`."""
        host, colon, port = text.rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        wrong = (colon and not bare) or (":" in bare and host == bare) or not _PORT.fullmatch(port)
        if wrong or int(port) > _LAST_PORT:
            message = f"{what} must be a port or HOST:PORT, such as 9400 or 0.0.0.0:9400, not {text[:40]!r}"
            raise InvalidValue(message)
        return bare or _LOOPBACK, int(port)

    def check(self, value: object, what: str) -> object:
        """Take a port, a text, or what was read."""
        return self.read(value if isinstance(value, str) else _as_address(value), what)

    def show(self, value: object) -> str:
        """Write host and port."""
        host, port = cast("tuple[str, int]", value)
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class Queues:
    """Queues with their weights, in order; kept as a mapping."""

    def read(self, text: str, what: str) -> object:
        """Take `email,default` or, with weights, `email=3,default`."""
        return _weights([_pair(part, what) for part in text.split(",")], what)

    def check(self, value: object, what: str) -> object:
        """Take a sequence of names, or a mapping of names to weights."""
        if isinstance(value, Mapping):
            return _weights(list(cast("Mapping[object, object]", value).items()), what)
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            return _weights([(name, 1) for name in cast("Sequence[object]", value)], what)
        message = f"{what} must be a sequence of queues, or a mapping of queues to weights, not {value!r}"
        raise InvalidValue(message)

    def show(self, value: object) -> str:
        """Write weights only where one is not 1."""
        weights = cast("Mapping[str, int]", value)
        if all(weight == 1 for weight in weights.values()):
            return ",".join(weights)
        return ",".join(f"{name}={weight}" for name, weight in weights.items())


def _as_address(value: object) -> str:
    match value:
        case (str(host), int(port)):
            return Address().show((host, port))
        case _:
            return str(value)


def _pair(text: str, what: str) -> tuple[object, object]:
    name, mark, weight = (part.strip() for part in text.partition("="))
    return name, Whole(1).read(weight, f"{what}: the weight of {name[:40]!r}") if mark else 1


def _weights(pairs: Sequence[tuple[object, object]], what: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for given, weight in pairs:
        name = check_name(given, "queue")
        if name in found:
            message = f"{what} names {name!r} twice: to work it more often give it a weight, {name}=2"
            raise InvalidValue(message)
        found[name] = cast("int", Whole(1).check(weight, f"{what}: the weight of {name!r}"))
    if not found:
        message = f"{what} names no queue: leave it out for all queues, or set concurrency to 0 to work none"
        raise InvalidValue(message)
    return found
