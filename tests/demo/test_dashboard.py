import sys

import pytest

from windlass.demo.dashboard import NEEDS_MORE, shown_in_browser
from windlass.demo.view import PlainView


async def test_without_its_packages_the_story_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for name in [name for name in sys.modules if name.startswith("windlass.http.dash")]:
        monkeypatch.delitem(sys.modules, name)

    async with shown_in_browser("memory://", PlainView()) as address:
        assert address is None

    assert NEEDS_MORE in capsys.readouterr().out
