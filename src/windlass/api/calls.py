"""What calls of several subjects share."""

from windlass.api.shape import Told

MOST_JOBS = 10_000
"""How many jobs one call may name; more of them are more calls."""


class Nothing(Told, kw_only=True):
    """It is done, and there is nothing to tell."""


class NamesTold(Told, kw_only=True):
    """Names, in order."""

    names: list[str]


class CountTold(Told, kw_only=True):
    """How many."""

    count: int


def empty_request(call: object) -> Nothing:
    """Return the request of a call without fields."""
    del call
    return Nothing()


def nothing_response(call: object, reply: None) -> Nothing:
    """Return the response to a call without a reply."""
    del call, reply
    return Nothing()


def nothing_reply(response: Nothing) -> None:
    """Return the reply of a call without one."""
    del response


def names_response(call: object, names: list[str]) -> NamesTold:
    """Return the response with some names."""
    del call
    return NamesTold(names=names)


def names_reply(response: NamesTold) -> list[str]:
    """Return the names of a response."""
    return response.names


def count_response(call: object, count: int) -> CountTold:
    """Return the response with a count."""
    del call
    return CountTold(count=count)


def count_reply(response: CountTold) -> int:
    """Return the count of a response."""
    return response.count
