"""The rights that the page on migrations lists, read off the page, also for other names than those that it gives."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from tests.docs.pages import text_of

_BLOCK: Final = re.compile(r"^```sql\n-- as .+?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_GRANT: Final = re.compile(r"grant (?P<privileges>[a-z, ]+) on (?P<places>.+) to windlass_run")
MAKE_ROLES, GRANT_ON_TABLES, GRANT_ONCE, SHOW_SESSIONS = _BLOCK.findall(text_of("howto/migrate-a-store.md"))
"""The blocks of the page in its order. They speak of the database shop, the schema jobs and two roles."""
_STATEMENTS: Final = [" ".join(text.split()) for text in (MAKE_ROLES + GRANT_ON_TABLES).split(";")]
_GRANTS: Final = [found for text in _STATEMENTS if (found := _GRANT.fullmatch(text))]
ON_DATABASE: Final = ";\n".join(found[0] for found in _GRANTS if found["places"].startswith("database "))
"""What the role that works is given once."""
IN_SCHEMA: Final = ";\n".join(found[0] for found in _GRANTS if not found["places"].startswith("database "))
"""What the role that works is given in a schema that holds the tables; together with `ON_DATABASE` it is all."""


class Right(NamedTuple):
    """One privilege on one thing: `select`, `jobs.windlass_job`; `usage`, `schema jobs`."""

    privilege: str
    place: str


def listed() -> list[Right]:
    """Return each right of the role that works, as the page names it."""
    return [
        Right(privilege, place)
        for grant in _GRANTS
        for privilege in grant["privileges"].split(", ")
        for place in grant["places"].split(", ")
    ]


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return `text` of the page with other names in place of its own."""
    return re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[0]], text)
