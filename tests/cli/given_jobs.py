"""Jobs in every state, for commands that look at them or change them."""

from dataclasses import dataclass

import windlass
from windlass import NewJob
from windlass.core.job import Note, Progress

ERROR = "kaputt \x1b[31m 日本語"


@dataclass(frozen=True)
class Given:
    pending: str
    later: str
    running: str
    succeeded: str
    dead: str


def fill(url: str) -> Given:
    """Put a job of each state into the store at `url`; `running` has a progress and two lines of log."""
    with windlass.connect_sync(url, max_attempts=2) as client:
        client.enqueue("reports", {"n": 1}, kind="report")
        client.enqueue("mail", {"to": "me", "api_token": "hush"}, kind="send", headers={"authorization": "hush"})
        client.enqueue("mail", {"to": "you"}, kind="send", tenant="acme")
        [dead, running] = client.claim_many("mail", limit=2)
        try:
            _fail()
        except ValueError as error:
            client.dead_letter(dead, error)
        lines = [("info", "line one"), ("warning", "wiped \x1b[2J")]
        note = Note(running.job.id, running.token, Progress(30, 100, "rows"), lines)
        client.run(lambda inner: inner.store.note([note]))
        done = client.claim("reports")
        assert done is not None
        client.ack(done, {"rows": 3, "password": "hush"})
        [pending, later] = client.enqueue_many([NewJob("mail", b"\xff\x00"), NewJob("mail", b"text", delay=3600)])
    return Given(pending.id, later.id, running.job.id, done.job.id, dead.job.id)


def _fail() -> None:
    raise ValueError(ERROR)
