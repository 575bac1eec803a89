"""Which jobs are listed, as it is typed: `queue:email state:dead timeout`."""

from typing import Any, Final

from windlass.core.errors import InvalidValue
from windlass.core.filters import JobFilter

_FIELDS: Final = {
    "queue": "queue",
    "kind": "kind",
    "state": "state",
    "tenant": "tenant",
    "schedule": "schedule_id",
    "error": "error",
}


def read_wanted(text: str) -> JobFilter | None:
    """Return which jobs are meant; None for all. Raises `InvalidValue` for what cannot match anything.

    Words without a field are looked for in id, kind, unique key, tenant and last error.
    """
    fields: dict[str, Any] = {}
    words: list[str] = []
    for word in text.split():
        name, colon, value = word.partition(":")
        if colon and name in _FIELDS:
            if not value:
                message = f"{name}: stands before what is meant, as in {name}:something"
                raise InvalidValue(message)
            fields[_FIELDS[name]] = value
        else:
            words.append(word)
    if words:
        fields["text"] = " ".join(words)
    return JobFilter(**fields) if fields else None
