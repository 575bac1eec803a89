"""Times for people: in a zone, and as a distance from now."""

from datetime import datetime, tzinfo

from windlass.client.spoken import distance, length

__all__ = ["distance", "length", "shown_at"]


def shown_at(at: datetime, zone: tzinfo) -> str:
    """Return a time in a zone, with its offset: around a change of the clocks the hour alone says too little."""
    local = at.astimezone(zone)
    offset = f"{local:%z}"
    return f"{local:%Y-%m-%d %H:%M:%S} {offset[:3]}:{offset[3:5]}"
