"""The scripts that run in the server: each is one move or one look, put together from its parts."""

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final, NamedTuple

_FOLDER: Final = files("windlass.stores.redis") / "scripts"
_PARTS: Final = "-- parts: "
_INNER_PARTS: Final = re.compile(r"^ +-- parts: (.*)$", re.MULTILINE)
"""Parts that a function of a script begins with: they are not made in a run that does not call it."""
_ONCE: Final = "-- once: "
"""Begins a script that must not be done twice: a repetition is answered as the first was."""
_WHOLE: Final = "-- whole: "
"""Begins a script that sees to that, and to news, by itself."""
_WHEN_FULL: Final = "#!lua flags=allow-oom\n"
_MAKE_ROOM: Final = frozenset(
    (
        "claim", "succeed", "settle", "renew", "cancel", "rescue", "promote", "prune", "delete", "reschedule",
        "set_queue_settings", "lock", "unlock", "beat", "leave", "remove_schedule", "forget_schedule", "set_moved",
        "let_go",
    )
)  # fmt: skip
"""Scripts that run in a server whose memory is full: what is there must come to an end, or no room is ever made."""


class Script(NamedTuple):
    """The whole text of a script, and the digest that the server knows it by.

    One that `tells` begins its reply with what it has told other processes.
    """

    name: str
    text: str
    digest: str
    tells: bool


@cache
def script(name: str) -> Script:
    """Return `scripts/<name>.lua` behind the parts that its first line names."""
    body = _INNER_PARTS.sub(lambda line: _joined(line[1].split()), (_FOLDER / f"{name}.lua").read_text())
    first = body.partition("\n")[0]
    if first.startswith(_ONCE):
        parts = [*first.removeprefix(_ONCE).split(), "receipts"]
        body = f"return once(function()\n{body}end)\n"
    else:
        parts = first.removeprefix(_PARTS).removeprefix(_WHOLE).split()
    is_whole = first.startswith(_WHOLE)
    if tells := "news" in parts:
        body = f"return telling(function()\n{body}end)\n"
    text = f"{_joined(parts)}\n{body}"
    if name in _MAKE_ROOM:
        text = _WHEN_FULL + text
    # the server names a script by this digest, which is no secret
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest(), tells or is_whole)


def _joined(parts: Sequence[str]) -> str:
    return "\n".join((_FOLDER / "parts" / f"{part}.lua").read_text() for part in parts)
