"""Settings and where they come from: code, pyproject.toml, the environment, flags. Nothing is read at import time."""

from windlass.config.resolve import FLAG, Resolved, Shown, resolve
from windlass.config.settings import SETTINGS, Setting
from windlass.config.sources import find_project

__all__ = ["FLAG", "SETTINGS", "Resolved", "Setting", "Shown", "find_project", "resolve"]
