"""The headers of a request, as they are sent: lines with their ends."""

from windlass.api.operations import REQUEST, SERVING
from windlass.stores.http.options import Options


def usual_headers(options: Options) -> bytes:
    """Return what stands in every request."""
    lines = [f"host: {options.authority}", "user-agent: windlass"]
    if options.token is not None:
        lines.append(f"authorization: Bearer {options.token}")
    return "".join(f"{line}\r\n" for line in lines).encode("ascii")


def request_header(request_id: str) -> bytes:
    """Return by which name the serving side knows a call, when it is repeated."""
    return f"{REQUEST}: {request_id}\r\n".encode("ascii")


def first_sent_header(serving: str) -> bytes:
    """Return which process a repeated call was first sent to."""
    return f"{SERVING}: {serving}\r\n".encode("ascii")
