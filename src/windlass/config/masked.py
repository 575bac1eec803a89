"""A URL as people may see it."""

import re
from typing import Final
from urllib.parse import unquote

HIDDEN: Final = "***"

_OPTION: Final = re.compile(r"([?&])([^=&]*)=([^&]*)")
_SECRET: Final = re.compile(r"pass|pwd|secret|token|key|credential|auth(?!or(?!i))|cookie|dsn", re.IGNORECASE)


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
    """Whether what goes by this name is probably not for everybody to see."""
    return _SECRET.search(name) is not None


def _hide_option(found: re.Match[str]) -> str:
    mark, name, value = found.groups()
    return f"{mark}{name}={HIDDEN if sounds_secret(unquote(name)) else value}"
