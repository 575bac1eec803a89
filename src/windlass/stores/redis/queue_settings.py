"""Settings of a queue: the layers at `settings|QUEUE`, and the set of the paused queues.

Claims read the set alone. A running worker of an earlier release never looks at the version of the layout again, so it
would not notice a pause that stood in the layers alone; and it pauses and resumes by the set alone. So the set has the
pauses that hold, and where an earlier release has changed it, the override of the operator follows it.
"""

from dataclasses import replace
from typing import Final, NamedTuple

import msgspec

from windlass.core.commands import SetQueueSettings
from windlass.core.queries import GetQueueSettings
from windlass.core.queue_settings import NO_SETTINGS, SettingsRow, StoredSettings, with_settings
from windlass.core.topics import PAUSES, queue_topic
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.damaged import left_out
from windlass.stores.redis.requests import Ask, as_text


class StoredLayers(NamedTuple):
    """The settings of a queue as the scripts read and write them."""

    declared: bytes = b""
    override: bytes = b""
    paused: bool = False

    def row(self) -> SettingsRow:
        """Return the layers, where the override follows the set of the paused queues."""
        row = SettingsRow(self.declared, self.override)
        if _is_paused(row) == self.paused:
            return row
        return row._replace(override=with_settings(row.override, StoredSettings(paused=self.paused)))


class SettingsReply(NamedTuple):
    """The settings of a queue, as `queue_settings.lua` returns them."""

    queue: str
    declared: bytes | None
    override: bytes | None
    paused: bool


_stored = msgspec.msgpack.Decoder(StoredLayers | None)
_found = msgspec.msgpack.Decoder(list[SettingsReply])
_left_out: Final = left_out("a layer of the settings of a queue")


async def set_queue_settings(caller: Caller, command: SetQueueSettings) -> None:
    """Set settings of a queue, such as whether it gives claims."""
    paused = command.settings.paused
    notify = None if paused is None else str(PAUSES if paused else queue_topic(command.queue))
    before: StoredLayers | None = StoredLayers()
    while before is not None:
        row = before.row().changed(command.settings, command.layer)
        ask: Ask = {
            "queue": command.queue,
            "before": [as_text(before.declared), as_text(before.override), before.paused],
            "declared": as_text(_in_bytes(row.declared)),
            "override": as_text(_in_bytes(row.override)),
            "paused": _is_paused(row),
            "notify": notify,
        }
        # the settings that are stored instead, which another process has written
        before = _stored.decode(await caller.execute(command, "set_queue_settings", ask))


async def queue_settings(caller: Caller, query: GetQueueSettings) -> dict[str, StoredSettings]:
    """Return the settings of those of the queues that have any."""
    replies = _found.decode(await caller.look("queue_settings", {"queues": list(query.queues)}))
    found = {reply.queue: _settings_of(reply) for reply in replies}
    return {queue: settings for queue, settings in found.items() if settings != NO_SETTINGS}


def _settings_of(reply: SettingsReply) -> StoredSettings:
    """Return the settings of a queue; a damaged layer counts as none."""
    row = SettingsRow(reply.declared, reply.override)
    is_hash = reply.declared is not None
    for layer in row.damaged if is_hash else ("each",):
        _left_out(f"{layer} of {reply.queue}")
    settings = row.settings
    if not reply.paused and settings.paused is None:
        return settings
    return replace(settings, paused=reply.paused)


def _is_paused(row: SettingsRow) -> bool:
    return row.settings.paused is True


def _in_bytes(layer: str | bytes | None) -> bytes:
    return layer.encode() if isinstance(layer, str) else layer or b""
