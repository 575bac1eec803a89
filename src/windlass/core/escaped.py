"""Text of somebody else, made fit for a terminal and for a page."""

import unicodedata
from typing import Final

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that move the cursor, turn the direction of writing, hide, or break a line."""


def escaped(text: str, *, keep: str = "") -> str:
    r"""Return `text` with every character that is obeyed, not shown, written as `\x1b` is; those in `keep` stay."""
    if text.isprintable():
        return text
    return "".join(each if each in keep or _seen(each) else _number(each) for each in text)


def _seen(character: str) -> bool:
    return unicodedata.category(character) not in _UNSEEN


def _number(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
