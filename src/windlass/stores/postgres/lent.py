"""What is known of a transaction that is lent."""

from dataclasses import dataclass, field

from windlass.core.ids import JobId
from windlass.core.topics import Topic


@dataclass(slots=True)
class Lent:
    """What its end brings: the news to be told, and the job whose claim it settles, if it does."""

    news: set[Topic] = field(default_factory=set[Topic])
    settles: JobId | None = None
