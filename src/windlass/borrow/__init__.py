"""A caller's own connections, whatever library they came through."""

from windlass.borrow.borrow import borrow

__all__ = ["borrow"]
