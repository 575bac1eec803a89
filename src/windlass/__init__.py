"""Windlass: a durable background-job queue. Importing it opens nothing; each name is loaded when it is first used."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.app.app import App
    from windlass.app.handle import BlockingHandle, Call, Handle
    from windlass.app.handler import Handler
    from windlass.blocking.client import BlockingClient
    from windlass.client.client import Client
    from windlass.client.results import Completed, NotFound, TimedOut
    from windlass.client.why import Reason, Why
    from windlass.connect import connect, connect_sync
    from windlass.core.errors import (
        AlreadyRunning,
        AppNotLoaded,
        ClaimLost,
        ClientClosed,
        DecodeError,
        EncodeError,
        Fenced,
        IdConflict,
        InvalidName,
        InvalidURL,
        InvalidValue,
        JobCancelled,
        JobConflict,
        JobDead,
        JobNotFound,
        LockLost,
        MissingExtra,
        NoCurrentJob,
        NotAllowed,
        NotAtomicHere,
        NotTransactional,
        OutcomeUnknown,
        PayloadTooLarge,
        ResultNotKept,
        ScheduleNotFound,
        SchemaMissing,
        SchemaTooNew,
        SchemaTooOld,
        StoreCorrupt,
        StoreFull,
        StoreMoved,
        StoreOwned,
        StoreReadOnly,
        StoreUnavailable,
        TenantNotFound,
        UniqueConflict,
        UnknownKind,
        ValueTooLarge,
        WindlassError,
        WrongState,
    )
    from windlass.core.filters import JobFilter
    from windlass.core.ids import JobId
    from windlass.core.job import (
        PRIORITY_HIGH,
        PRIORITY_LOW,
        PRIORITY_NORMAL,
        Claim,
        Delivery,
        Enqueued,
        Job,
        LogLine,
        NewJob,
        Progress,
        Token,
    )
    from windlass.core.names import (
        MAX_ATTEMPTS,
        MAX_ERROR,
        MAX_HEADER,
        MAX_KEY,
        MAX_LOG_LINE,
        MAX_NAME,
        MAX_PAYLOAD,
        MAX_PRIORITY,
        MAX_TRACEBACK,
        MAX_VALUE,
    )
    from windlass.core.requests import NOT_FOUND, REMOVED, REQUESTED, CancelOutcome
    from windlass.core.retry import Exponential, Fixed, Linear, NoRetry
    from windlass.core.schedule import Schedule
    from windlass.core.settings import QueueSettings
    from windlass.core.signals import Cancel, PermanentFailure, Release, Retry, Snooze
    from windlass.core.states import State
    from windlass.core.stats import QueueStats, Totals
    from windlass.core.unique import Unique
    from windlass.engine.config import ServerConfig
    from windlass.engine.context import Context, current
    from windlass.engine.server import Server
    from windlass.handlers.marked import Secret
    from windlass.handlers.signature import given

    __version__: str

__all__ = [
    "MAX_ATTEMPTS",
    "MAX_ERROR",
    "MAX_HEADER",
    "MAX_KEY",
    "MAX_LOG_LINE",
    "MAX_NAME",
    "MAX_PAYLOAD",
    "MAX_PRIORITY",
    "MAX_TRACEBACK",
    "MAX_VALUE",
    "NOT_FOUND",
    "PRIORITY_HIGH",
    "PRIORITY_LOW",
    "PRIORITY_NORMAL",
    "REMOVED",
    "REQUESTED",
    "AlreadyRunning",
    "App",
    "AppNotLoaded",
    "BlockingClient",
    "BlockingHandle",
    "Call",
    "Cancel",
    "CancelOutcome",
    "Claim",
    "ClaimLost",
    "Client",
    "ClientClosed",
    "Completed",
    "Context",
    "DecodeError",
    "Delivery",
    "EncodeError",
    "Enqueued",
    "Exponential",
    "Fenced",
    "Fixed",
    "Handle",
    "Handler",
    "IdConflict",
    "InvalidName",
    "InvalidURL",
    "InvalidValue",
    "Job",
    "JobCancelled",
    "JobConflict",
    "JobDead",
    "JobFilter",
    "JobId",
    "JobNotFound",
    "Linear",
    "LockLost",
    "LogLine",
    "MissingExtra",
    "NewJob",
    "NoCurrentJob",
    "NoRetry",
    "NotAllowed",
    "NotAtomicHere",
    "NotFound",
    "NotTransactional",
    "OutcomeUnknown",
    "PayloadTooLarge",
    "PermanentFailure",
    "Progress",
    "QueueSettings",
    "QueueStats",
    "Reason",
    "Release",
    "ResultNotKept",
    "Retry",
    "Schedule",
    "ScheduleNotFound",
    "SchemaMissing",
    "SchemaTooNew",
    "SchemaTooOld",
    "Secret",
    "Server",
    "ServerConfig",
    "Snooze",
    "State",
    "StoreCorrupt",
    "StoreFull",
    "StoreMoved",
    "StoreOwned",
    "StoreReadOnly",
    "StoreUnavailable",
    "TenantNotFound",
    "TimedOut",
    "Token",
    "Totals",
    "Unique",
    "UniqueConflict",
    "UnknownKind",
    "ValueTooLarge",
    "Why",
    "WindlassError",
    "WrongState",
    "connect",
    "connect_sync",
    "current",
    "given",
]

_HOMES = {
    "windlass.app.app": ("App",),
    "windlass.app.handle": ("BlockingHandle", "Call", "Handle"),
    "windlass.app.handler": ("Handler",),
    "windlass.blocking": ("BlockingClient",),
    "windlass.client": ("Client",),
    "windlass.client.results": ("Completed", "NotFound", "TimedOut"),
    "windlass.client.why": ("Reason", "Why"),
    "windlass.connect": ("connect", "connect_sync"),
    "windlass.core.filters": ("JobFilter",),
    "windlass.core.ids": ("JobId",),
    "windlass.core.job": (
        *("PRIORITY_HIGH", "PRIORITY_LOW", "PRIORITY_NORMAL", "Claim", "Delivery", "Enqueued", "Job", "LogLine"),
        *("NewJob", "Progress", "Token"),
    ),
    "windlass.core.retry": ("Exponential", "Fixed", "Linear", "NoRetry"),
    "windlass.core.schedule": ("Schedule",),
    "windlass.core.settings": ("QueueSettings",),
    "windlass.core.signals": ("Cancel", "PermanentFailure", "Release", "Retry", "Snooze"),
    "windlass.core.states": ("State",),
    "windlass.core.stats": ("QueueStats", "Totals"),
    "windlass.core.names": (
        "MAX_ATTEMPTS",
        "MAX_ERROR",
        "MAX_HEADER",
        "MAX_KEY",
        "MAX_LOG_LINE",
        "MAX_NAME",
        "MAX_PAYLOAD",
        "MAX_PRIORITY",
        "MAX_TRACEBACK",
        "MAX_VALUE",
    ),
    "windlass.core.requests": ("NOT_FOUND", "REMOVED", "REQUESTED", "CancelOutcome"),
    "windlass.core.unique": ("Unique",),
    "windlass.engine.config": ("ServerConfig",),
    "windlass.engine.context": ("Context", "current"),
    "windlass.engine.server": ("Server",),
    "windlass.handlers.marked": ("Secret",),
    "windlass.handlers.signature": ("given",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    """The package: `windlass.connect` is the function, also after an import of its module, which has the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in __all__:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    if name == "__version__":
        from windlass.version import VERSION

        value: object = VERSION
    elif name in __all__:
        # whatever has no home of its own is an error
        value = getattr(import_module(_HOME_OF.get(name, "windlass.core.errors")), name)
    else:
        message = f"module 'windlass' has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
