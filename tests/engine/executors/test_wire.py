import socket
import threading
from collections.abc import Iterator

import pytest

from proofs.children import eventually
from windlass.engine.executors.wire import MOST_WAITING, Frames, Post

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    one, other = socket.socketpair()
    one.settimeout(0)
    other.settimeout(0)
    with one, other:
        yield one, other


def read(frames: Frames, count: int) -> list[bytes]:
    messages: list[bytes] = []

    def come() -> bool:
        while frames.receive():
            messages.extend(frames.messages())
        return len(messages) >= count

    assert eventually(come)
    return messages


def test_messages_arrive_whole_and_in_order(ends: Ends) -> None:
    post, frames = Post(ends[0]), Frames(ends[1])
    sent = [b"", b"one", b"x" * 3_000_000, b"two", *[bytes([n]) * n for n in range(100)]]

    for message in sent:
        post.send(message)

    assert read(frames, len(sent)) == sent
    assert not frames.ended


def test_many_threads_may_send_at_once(ends: Ends) -> None:
    post, frames = Post(ends[0]), Frames(ends[1])

    def send(number: int) -> None:
        for turn in range(200):
            post.send(f"{number} {turn} ".encode() * 500)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    messages = read(frames, 800)
    for thread in threads:
        thread.join()

    heads = [message[: len(message) // 500].decode().split() for message in messages]
    assert all(message == message[: len(message) // 500] * 500 for message in messages)
    for number in range(4):
        assert [int(turn) for who, turn in heads if who == str(number)] == list(range(200))


def test_what_may_be_lost_is_dropped_when_nobody_reads_for_long(ends: Ends) -> None:
    post = Post(ends[0])
    post.send(b"x" * (MOST_WAITING + 1_000_000))

    assert not post.send(b"a note", may_be_lost=True)
    assert post.send(b"an end")


def test_the_end_of_the_other_side_is_told_after_its_last_message(ends: Ends) -> None:
    post, frames = Post(ends[0]), Frames(ends[1])
    post.send(b"last words")

    ends[0].close()

    assert read(frames, 1) == [b"last words"]
    assert frames.ended
    Post(ends[1]).send(b"nobody hears this")
