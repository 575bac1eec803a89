"""The paths of secret fields in a payload, as they are stored with a job: `pin,card.number,items[].code`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Final, TypeAlias

Path: TypeAlias = tuple[str, ...]
"""The names that lead to a field from the payload on; `EACH` stands for all that there is."""

HEADER: Final = "windlass-secret"
"""The header that tells which fields of a payload are secret. It is none itself: whoever shows a job goes by it."""
EACH: Final = "[]"
"""The step to every item of a list, or to every value of an object."""
MOST_STEPS: Final = 8
MOST_PATHS: Final = 32
_MOST_TEXT: Final = 2_000
"""How many characters they may take; a header has room for as many, whichever they are."""

_NAME: Final = r"[^.,\[\]]+"
_PATH: Final = re.compile(rf"(?:\[\]|{_NAME})(?:\[\]|\.{_NAME})*")
_DAMAGED_HEADERS: Final = re.compile(r"(?:^|; )headers ")
_STEP: Final = re.compile(rf"\[\]|{_NAME}")


def written(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return paths as texts, few and short enough to be stored with every job.

    What cannot be said so is hidden with all that stands around it: rather too much than too little.
    """
    known = _bounded(tuple(takewhile(_can_be_written, path)) for path in paths)
    for most_steps in (MOST_STEPS, 1):
        texts = tuple(dict.fromkeys(_text(path[:most_steps]) for path in known))
        if len(",".join(texts)) <= _MOST_TEXT:
            return texts
    return (EACH,)


def header_of(texts: Sequence[str]) -> Mapping[str, str] | None:
    """Return the header that tells of these paths; None where there are none."""
    return {HEADER: ",".join(texts)} if texts else None


def read(texts: Iterable[str]) -> Sequence[Path]:
    """Return the paths in texts from anywhere; those that mean nothing are left out."""
    return _bounded(tuple(_STEP.findall(text)) for text in texts if _PATH.fullmatch(text))


def paths_in(headers: Mapping[str, str]) -> Sequence[Path]:
    """Return the paths of the secret fields of a job, which anybody may have written."""
    text = headers.get(HEADER)
    return read(text.split(",")) if text else ()


def secret_headers(headers: Mapping[str, str], damage: str | None) -> Mapping[str, str]:
    """Return the headers by which a payload is hidden: where they cannot be read, all of its fields are secret."""
    return {HEADER: EACH} if damage is not None and _DAMAGED_HEADERS.search(damage) else headers


def _bounded(paths: Iterable[Path]) -> Sequence[Path]:
    known = list(dict.fromkeys(path[:MOST_STEPS] or (EACH,) for path in paths))
    return known if len(known) <= MOST_PATHS else list(dict.fromkeys(path[:1] for path in known))


def _can_be_written(step: str) -> bool:
    return step == EACH or (step.isprintable() and re.fullmatch(_NAME, step) is not None)


def _text(path: Path) -> str:
    return "".join(step if step == EACH else f".{step}" for step in path).removeprefix(".")
