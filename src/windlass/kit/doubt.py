"""What a caller is told of a call that may have been done."""

from windlass.core.errors import OutcomeUnknown, StoreUnavailable, WindlassError

_MAY_BE_DONE = "it may have been done all the same"


def in_doubt(fault: StoreUnavailable, doubt: str | None) -> WindlassError:
    """Return the error of a call that was sent and met this fault: it names the job `doubt`, or says it in words."""
    told: WindlassError
    if doubt is not None:
        told = OutcomeUnknown(doubt)
    elif type(fault) is StoreUnavailable and _MAY_BE_DONE not in str(fault):
        told = StoreUnavailable(f"{fault}; {_MAY_BE_DONE}", retryable=fault.retryable)
    else:
        # one that a server has told, or that says so
        return fault
    told.__cause__ = fault
    return told
