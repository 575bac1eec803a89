"""Why a job stands where it stands, as the API writes it."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

from windlass.api.shape import Id, Moment, Told
from windlass.core.states import State

Fact: TypeAlias = str | int | float | None
"""A time is written in ISO 8601."""


class Reason(Told, kw_only=True, omit_defaults=False):
    """One reason: a name for programs, a sentence for people, what to do, and the facts in it."""

    name: str
    message: str
    advice: str | None = None
    facts: dict[str, Fact] = {}


class Why(Told, kw_only=True):
    """The reasons why a job stands where it stands, the most decisive first, at the time `now` of the store."""

    id: Id
    now: Moment
    state: State
    reasons: list[Reason]


def facts_of(facts: Mapping[str, Fact | datetime]) -> dict[str, Fact]:
    """Return facts as the API writes them."""
    return {name: fact.isoformat() if isinstance(fact, datetime) else fact for name, fact in facts.items()}
