"""The parameters of a page's URL, as forms write them."""

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec

from windlass.http.asked import MOST_PARAMETERS, SEE, query_reader
from windlass.http.refusal import Refusal

A = TypeVar("A", bound=msgspec.Struct)


def page_reader(asks: type[A]) -> Callable[[bytes], A]:
    """Return what makes a record of the query of a page; a field of a form that was left empty is not there."""
    read = query_reader(asks)

    def read_given(query: bytes) -> A:
        try:
            return read(without_blanks(query))
        except Refusal as refusal:
            raise _of_a_page(refusal) from None

    return read_given


def _of_a_page(refusal: Refusal) -> Refusal:
    # no document of the API tells what a page can be asked for
    told = refusal.problem.message.removesuffix(SEE)
    return Refusal(refusal.status, refusal.problem.error, f"{told}. Mend the address, or begin at the overview.")


def without_blanks(query: bytes) -> bytes:
    """Return a query without parameters that have no value; one that cannot be read stays as it is."""
    try:
        pairs = parse_qsl(query.decode("ascii"), errors="strict", max_num_fields=MOST_PARAMETERS)
    except ValueError:
        return query
    return urlencode([(name, value.strip()) for name, value in pairs if value.strip()]).encode()
