"""Examples in the OpenAPI document: a job from its enqueue to its end."""

from collections.abc import Mapping
from typing import Any, Final

_JOB: Final = "0190c5f0-3f2a-7c1b-9c2e-5d3a6f1b2c4d"
_TOKEN: Final = "6f0f7a3c2b1d4e5f8a9b0c1d2e3f4a5b"  # noqa: S105 - of an example

EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "enqueue": {
        "one": {
            "summary": "One job, to be worked on as soon as somebody is free",
            "value": {"jobs": [{"queue": "email", "kind": "welcome", "payload": {"to": "ada@example.com"}}]},
        },
        "later": {
            "summary": "One job in an hour, at most once for its key",
            "value": {
                "jobs": [
                    {
                        "queue": "reports",
                        "payload": {"month": "2026-01"},
                        "delay": 3600,
                        "unique": {"key": "2026-01", "until": "finished"},
                    }
                ]
            },
        },
        "bytes": {
            "summary": "One job whose payload is bytes",
            "value": {"jobs": [{"queue": "thumbnails", "payload_base64": "iVBORw0KGgo="}]},
        },
    },
    "claim": {
        "wait": {
            "summary": "Wait up to half a minute for one job",
            "value": {"queues": ["urgent", "email"], "lease": 60, "wait": 30},
        },
        "many": {"summary": "Up to ten jobs that are ready now", "value": {"queues": ["email"], "limit": 10}},
    },
    "settle": {
        "ack": {
            "summary": "The work was done",
            "value": {"settlements": [{"do": "ack", "id": _JOB, "token": _TOKEN, "result": {"sent": True}}]},
        },
        "nack": {
            "summary": "The attempt failed; the retry policy of the serving side says when it is tried again",
            "value": {"settlements": [{"do": "nack", "id": _JOB, "token": _TOKEN, "error": "no such address"}]},
        },
    },
}
