"""One job in the model of a store: what is kept of it."""

from dataclasses import dataclass

from windlass.core.job import Job, Token
from windlass.core.unique import Hold


@dataclass
class Record:
    """One job as readers see it, and what the store alone knows of it."""

    job: Job
    key: Hold | None
    """The key that the job shows: the one that it holds, or could hold again."""
    freed: Hold | None = None
    """The key that the running claim freed: a release before the start may take it back."""
    token: Token | None = None
    settled_by: Token | None = None
