"""A URL as people may see it."""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

HIDDEN: Final = "***"

_OPTION: Final = re.compile(r"([?&])([^=&]*)=([^&]*)")
_WORDS: Final = ("pass", "pwd", "secret", "token", "key", "credential", "cookie", "dsn")
_AUTH: Final = re.compile(r"auth(?!or(?!i))")
_SHORT: Final = 64
"""Characters of a name whose answer is kept: a payload has the same few names again and again."""


def masked(url: str) -> str:
    """Return `url` without its password, nor the values of options whose names sound secret.

    Characters that a password should have been quoted for do not end it: rather too much is hidden than too little.
    """
    scheme, mark, rest = url.partition("://")
    shown = _OPTION.sub(_hide_option, rest)
    if "@" in rest and "@" not in shown:
        # an option has swallowed the end of the password
        return f"{scheme}{mark}{HIDDEN}"
    before, at, after = shown.rpartition("@")
    user, colon, _ = before.partition(":")
    if not colon or rest.startswith("/"):
        return f"{scheme}{mark}{shown}"
    return f"{scheme}{mark}{user}:{HIDDEN}{at}{after}"


def sounds_secret(name: str) -> bool:
    """Whether what goes by this name is probably not for everybody to see; takes time in proportion to its length."""
    return _short_sounds_secret(name) if len(name) <= _SHORT else _has_secret_word(name)


def _has_secret_word(text: str) -> bool:
    # a pattern of all words would try each of them at every character: whole payloads are looked through as well
    folded = text.lower() if text.isascii() else _folded(text)
    return any(word in folded for word in _WORDS) or ("auth" in folded and _AUTH.search(folded) is not None)


_short_sounds_secret: Final = lru_cache(maxsize=4_096)(_has_secret_word)


def _folded(text: str) -> str:
    """Return text without the difference of cases, nor that of an i with and without its dot."""
    return text.casefold().replace("i\u0307", "i").replace("\u0131", "i")


def _hide_option(found: re.Match[str]) -> str:
    mark, name, value = found.groups()
    return f"{mark}{name}={HIDDEN if sounds_secret(unquote(name)) else value}"
