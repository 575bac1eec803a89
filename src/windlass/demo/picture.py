"""Pictures in grey, as rows of numbers from 0 to 255: painted by a formula, and made smaller."""

import math
from collections.abc import Sequence
from random import Random
from typing import TypeAlias

Picture: TypeAlias = Sequence[Sequence[int]]


def painted(*, seed: int, width: int, height: int) -> Picture:
    """Return soft waves around three centres; the same seed paints the same picture."""
    chance = Random(seed)
    centres = [(chance.uniform(0, width), chance.uniform(0, height), chance.uniform(5, 20)) for _ in range(3)]
    return [
        [
            int(127.5 + 42.5 * sum(math.sin(math.hypot(x - cx, y - cy) / r) for cx, cy, r in centres))
            for x in range(width)
        ]
        for y in range(height)
    ]


def shrunk(picture: Picture, *, by: int) -> Picture:
    """Return the picture with each square of `by` by `by` points as one point: their mean."""
    rows = [picture[top : top + by] for top in range(0, len(picture), by)]
    return [
        [
            round(sum(sum(row[left : left + by]) for row in band) / (len(band) * by))
            for left in range(0, len(band[0]), by)
        ]
        for band in rows
    ]
