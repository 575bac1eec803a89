"""A payload or a result as a page writes it: short enough to be sent each time that something changes."""

from typing import Final, NamedTuple

from windlass.codec import JSON, RAW
from windlass.config.carried import Carried, in_text, payload_of, result_of
from windlass.core.job import Job

MOST_TEXT: Final = 20_000
"""Characters of it that are written."""
MOST_BYTES: Final = 2_048
"""Bytes of it that are written, where it is no text."""
_ON_A_LINE: Final = 16
_LOOKED_AT: Final = MOST_TEXT + 1
"""Characters that are looked at: by the last one it is known that there are more."""


class CarriedText(NamedTuple):
    """What is written of it, what it is, and how much of it is left out."""

    text: str
    size: int
    """Bytes, as it is stored."""
    what: str
    cut: str | None
    """What is written of how much; None where all of it is."""


def payload_text(job: Job) -> CarriedText:
    """Return the payload of a job, without its secrets."""
    return _written(payload_of(job, most=_LOOKED_AT), job.codec, len(job.payload))


def result_text(job: Job) -> CarriedText | None:
    """Return what a job returned, without what sounds secret; None where it returned nothing that was kept."""
    if job.result is None:
        return None
    return _written(result_of(job, most=_LOOKED_AT), job.result_codec or RAW, len(job.result))


def without_carried(job: Job) -> Job:
    """Return a job without what it carries and returned: a list that is kept holds little."""
    return job._replace(payload=b"", result=None, headers={})


def _written(carried: Carried, codec: str, size: int) -> CarriedText:
    if carried.data is not None:
        shown = carried.data[:MOST_BYTES]
        cut = f"the first {MOST_BYTES:,} of {size:,} bytes" if size > MOST_BYTES else None
        return CarriedText(_hexadecimal(shown), size, _said("bytes", codec), cut)
    what = "text" if isinstance(carried.value, str) and codec != JSON.name else "JSON"
    text = in_text(carried, indent=2)
    cut = f"the first {MOST_TEXT:,} characters" if len(text) > MOST_TEXT else None
    return CarriedText(text[:MOST_TEXT], size, _said(what, codec), cut)


def _said(what: str, codec: str) -> str:
    if codec in (JSON.name, RAW):
        return what
    return f"{what}, written by codec {codec!r}, which is not read here"


def _hexadecimal(data: bytes) -> str:
    lines = (data[at : at + _ON_A_LINE] for at in range(0, len(data), _ON_A_LINE))
    return "\n".join(f"{number * _ON_A_LINE:06x}  {line.hex(' ')}" for number, line in enumerate(lines))
