"""Counting the jobs that have begun, and waiting for the last of them."""

import asyncio

PATIENCE = 30.0


class Count:
    """How many jobs have begun."""

    def __init__(self) -> None:
        """Begin with none."""
        self.begun = 0
        self._goal = -1
        self._reached = asyncio.Event()

    def add(self) -> None:
        """Count one."""
        self.begun += 1
        if self.begun == self._goal:
            self._reached.set()

    async def wait(self, goal: int, seconds: float = PATIENCE) -> bool:
        """Wait until `goal` jobs have begun; return False when `seconds` are over first."""
        self._goal = goal
        self._reached.clear()
        if self.begun >= goal:
            return True
        try:
            await asyncio.wait_for(self._reached.wait(), seconds)
        except TimeoutError:
            return False
        return True
