"""Why a job has not run, or how it ended: the reasons, the most decisive first."""

from windlass.client.why.known import Known, Reason
from windlass.client.why.look import Why, why
from windlass.client.why.reasons import reasons

__all__ = ["Known", "Reason", "Why", "reasons", "why"]
