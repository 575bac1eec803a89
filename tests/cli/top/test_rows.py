from datetime import UTC, datetime

import pytest

from windlass.cli.queues import HEADS
from windlass.cli.top.frame import Frame
from windlass.cli.top.rows import VERY_WIDE, WIDE, queue_table, server_table

FRAME = Frame(datetime(2026, 1, 1, tzinfo=UTC), (), (), (), (), (), None)
ON_A_SMALL_TERMINAL = 78


@pytest.mark.parametrize("width", [ON_A_SMALL_TERMINAL, WIDE, VERY_WIDE])
def test_states_are_named_as_in_the_list_of_queues(width: int) -> None:
    heads = [column.head for column in queue_table(FRAME, {}, width).columns]

    assert {"PENDING", "RUNNING", "SCHEDULED", "DEAD"} <= set(heads) & set(HEADS)
    assert width < WIDE or {"SUCCEEDED", "CANCELLED"} <= set(heads) & set(HEADS)
    assert "RUNNING" in [column.head for column in server_table(FRAME, width).columns]


def test_a_small_terminal_has_room_for_the_name_of_a_queue() -> None:
    columns = queue_table(FRAME, {}, ON_A_SMALL_TERMINAL).columns

    taken = sum(column.width + 1 for column in columns if column.width)
    assert ON_A_SMALL_TERMINAL - taken >= len("email (paused)")
    assert all(len(column.head) <= column.width for column in columns if column.width)
