"""A damaged record stops no operation on other jobs, and ends as the page of damaged records says."""

from typing import Final

import pytest

from tests.damage.table import NONE, OPERATIONS, DamagedStore, in_page, rendered, run, stores
from tests.each_store import STORES

TESTED: Final = [pytest.param(store, id=store.name) for store in stores() if store.name in STORES]


@pytest.mark.parametrize("store", TESTED)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_damaged_record_stops_no_other_job(store: DamagedStore, operation: str) -> None:
    cells = await run(store, operation)

    # `python -m tests.damage.table` writes the page
    assert in_page(store)[1][operation] == {cell: word for cell, word in cells.items() if word != NONE}


@pytest.mark.parametrize("store", TESTED)
def test_the_page_has_each_table_as_it_is_written(store: DamagedStore) -> None:
    table, columns = in_page(store)

    assert table == rendered(store, columns)
