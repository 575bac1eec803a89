"""The browser that pages are tried in: one that is installed on this machine."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def why_not() -> str | None:
    """Return why no page can be tried here; None where there is a browser."""
    if told := os.environ.get("WINDLASS_TEST_NO_BROWSER"):
        return f"no browser is used in this run: {told}"
    if chromium() is None:
        return "there is no Chromium: install it (apt-get install chromium), or name it by WINDLASS_TEST_CHROMIUM"
    return None


def chromium() -> str | None:
    """Return the program."""
    named = os.environ.get("WINDLASS_TEST_CHROMIUM")
    return named or next((found for found in map(shutil.which, NAMES) if found is not None), None)
