import signal
from pathlib import Path

from proofs.children import eventually
from proofs.serving import lives
from tests.parent.given import Running, enqueue, jobs


def test_a_child_whose_slots_are_held_past_their_timeouts_is_replaced(tmp_path: Path) -> None:
    enqueue(tmp_path, "hang_past_timeout", {"seconds": 600})
    with Running(tmp_path, "--concurrency", "2", "--shutdown-timeout", "200ms", "--log-level", "debug") as running:
        child = running.noted("began-hang")

        running.says("is replaced")
        running.says("ready: ", 2)

        assert eventually(lambda: not lives(child), 10)
        assert "1 of 2 slots are held by jobs past their timeout" in running.log()
        assert "does not end: it is killed" not in running.log()
        running.signal(signal.SIGTERM)
        assert running.ends() == 0


def test_a_child_whose_event_loop_is_blocked_is_replaced_and_the_attempt_has_failed(tmp_path: Path) -> None:
    """Its timeout and a lease are over: nothing renews the job any more, and only the end of its process ends it."""
    enqueue(tmp_path, "block_the_loop", {"seconds": 600})
    options = ("--lease", "300ms", "--shutdown-timeout", "200ms", "--rescue-interval", "1h")
    with Running(tmp_path, *options) as running:
        child = running.noted("began-block")

        running.says("is replaced")
        running.noted("began-block", 2)

        assert eventually(lambda: not lives(child), 10)
        assert "is blocked: what it runs is cut off" in running.log()
        assert jobs(tmp_path) == [("running", 2, 2)]
        running.signal(signal.SIGQUIT)
        assert running.ends() == 131
