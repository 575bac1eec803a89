"""Every behaviour, on every store."""

from windlass.testing.conformance import *  # noqa: F403 - one import collects them all
