"""A stream of news, in pieces of any size."""

from typing import Final

import pytest

from windlass.core.topics import ENDS, queue_topic
from windlass.stores.http.events import LONGEST_LINE, Events

STREAM: Final = (
    b': hello\n\ndata: {"topics": ["ends"]}\n\nevent: news\r\ndata:{"topics":["ends","queue:a b"]}\r\n\r\n: \n'
)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000])
def test_events_are_read_wherever_the_stream_is_cut(size: int) -> None:
    events = Events()

    read = [each for at in range(0, len(STREAM), size) for each in events.read(STREAM[at : at + size])]

    assert read == [[ENDS], [ENDS, queue_topic("a b")]]


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'{"topics": 5}', b"\xff", b'{"topics": ["ends"]'])
def test_what_is_not_understood_may_be_about_anything(data: bytes) -> None:
    assert list(Events().read(b"data: " + data + b"\n")) == [None]


def test_an_event_without_end_is_a_lost_stream() -> None:
    events = Events()
    for _ in range(LONGEST_LINE // 1024):
        assert list(events.read(b"x" * 1024)) == []

    with pytest.raises(ConnectionError, match="has no end"):
        list(events.read(b"x"))
