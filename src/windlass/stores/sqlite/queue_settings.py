"""Settings of a queue: the layers in `windlass_queue`, and whether it is paused in `windlass_count`.

Claims read the column `paused` alone. A process of earlier code that has the file open would not notice a pause that
stood in the layers alone; and it pauses and resumes by the column alone. So where it has changed the column, the
override of the operator follows.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.core.commands import SetQueueSettings
from windlass.core.queries import GetQueueSettings
from windlass.core.queue_settings import NO_ROW, NO_SETTINGS, SettingsRow, StoredSettings, with_settings
from windlass.core.topics import PAUSES, queue_topic
from windlass.stores.sqlite.damaged import LOG
from windlass.stores.sqlite.reader import Snapshot
from windlass.stores.sqlite.rows import json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction


def set_queue_settings(tx: Transaction, command: SetQueueSettings) -> None:
    """Set settings of a queue, such as whether it gives claims."""
    queue, paused = command.queue, command.settings.paused
    before = _stored(tx.cursor, [queue]).get(queue, _NOTHING).row()
    row = before.changed(command.settings, command.layer)
    if row is not before:
        layers = {"declared": _text(row.declared), "override": _text(row.override)}
        tx.run("write_settings", {"queue": queue, **layers, "revision": row.revision})
    if row is not before or paused is not None:
        tx.run("pause", {"queue": queue, "paused": int(row.settings.paused is True)})
    if paused is not None:
        tx.topics.add(PAUSES if paused else queue_topic(queue))


def queue_settings(snapshot: Snapshot, query: GetQueueSettings) -> dict[str, StoredSettings]:
    """Return the settings of those of the queues that have any; a damaged layer counts as none."""
    found = _stored(snapshot.cursor, query.queues)
    for queue, stored in found.items():
        for layer in stored.layers.damaged:
            LOG.log(f"a layer of the settings of queue {queue!r} is damaged and left out: %s", layer)
    settings = {queue: stored.row().settings for queue, stored in found.items()}
    return {queue: each for queue, each in settings.items() if each != NO_SETTINGS}


class _Stored(NamedTuple):
    """The settings of a queue as they are stored."""

    layers: SettingsRow
    paused: bool

    def row(self) -> SettingsRow:
        """Return the layers, where the override follows the column."""
        if (self.layers.settings.paused is True) == self.paused:
            return self.layers
        override = with_settings(self.layers.override, StoredSettings(paused=self.paused))
        return self.layers._replace(override=override)


_NOTHING: Final = _Stored(NO_ROW, paused=False)


def _stored(cursor: sqlite3.Cursor, queues: Sequence[str]) -> dict[str, _Stored]:
    rows = cursor.execute(sql("settings_of"), {"queues": json_list(list(queues))}).fetchall()
    return {
        queue: _Stored(SettingsRow(declared, override, revision or 0), bool(paused))
        for queue, paused, declared, override, revision in rows
    }


def _text(layer: str | bytes | None) -> str:
    """Return a layer as it is written; what is no text of a damaged one is replaced."""
    return layer.decode(errors="replace") if isinstance(layer, bytes) else layer or ""
