"""The headers of a request that decide whether it is let in."""

from collections.abc import Iterable, Mapping
from typing import Final

from windlass.http.refusal import Refusal

_DECIDING: Final[Mapping[bytes, str]] = {
    name.encode(): name
    for name in (
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "origin",
        "sec-fetch-mode",
        "sec-fetch-site",
        "transfer-encoding",
    )
}


def deciding_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers that decide, by their names in lower case.

    One that is there twice is refused: who reads the first and who reads the last would decide about two requests.
    """
    found: dict[str, str] = {}
    for raw_name, value in raw:
        name = _DECIDING.get(raw_name)
        if name is None:
            continue
        text = value.decode("latin-1")
        if name not in found:
            found[name] = text
        elif name == "cookie":
            # the one that may be sent in pieces
            found[name] += f"; {text}"
        else:
            message = f"the header {name} is there twice: send it once"
            raise Refusal(400, "bad_request", message)
    return found


def announces_body(headers: Mapping[str, str]) -> bool:
    """Whether a request says that a body follows."""
    return headers.get("content-length", "0").strip() not in ("0", "") or "transfer-encoding" in headers
