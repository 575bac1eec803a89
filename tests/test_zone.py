import struct
import sys
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from windlass.core.errors import InvalidValue
from windlass.zone import zone


@pytest.fixture
def own_data(tmp_path: Path) -> Iterator[Path]:
    """A folder that is all the zone data there is, with nothing in it."""
    folder = tmp_path / "zones"
    folder.mkdir()
    before = zoneinfo.TZPATH
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.startswith("tzdata.")]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "tzdata", None)
        zoneinfo.reset_tzpath([str(folder)])
        zoneinfo.ZoneInfo.clear_cache()
        yield folder
    zoneinfo.reset_tzpath(before)
    zoneinfo.ZoneInfo.clear_cache()


def a_zone_file() -> bytes:
    """A zone that is five hours and a half ahead, as a TZif file of version 1."""
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    return b"TZif" + bytes(16) + counts + struct.pack(">lBB", 19_800, 0, 0) + b"IST\0"


def test_every_zone_is_found_by_its_name() -> None:
    now = datetime(2026, 7, 1, tzinfo=UTC)

    for name in zoneinfo.available_timezones() - {"localtime"}:
        assert now.astimezone(zone(name)).utcoffset() == now.astimezone(zoneinfo.ZoneInfo(name)).utcoffset()
        assert str(zone(name)) == name


@pytest.mark.parametrize(
    "name, advice",
    [
        ("Europe/Stokholm", "did you mean 'Europe/Stockholm'?"),
        ("europe/stockholm", "did you mean 'Europe/Stockholm'?"),
        ("Stockholm", "did you mean 'Europe/Stockholm'?"),
        ("Utc", "did you mean 'UTC'?"),
        ("Middle-earth/Shire", "use an IANA name, as in 'Europe/Stockholm'"),
        ("", "use an IANA name"),
        (" ", "use an IANA name"),
        ("right/Europe/Stockholm", "did you mean 'Europe/Stockholm'?"),
        ("localtime", "there is no time zone"),
        ("Europe/Stockholm\n", "did you mean 'Europe/Stockholm'?"),
        ("Europe\0", "there is no time zone"),
        ("Zürich", "there is no time zone 'Zürich'"),
        ("\ud800", "there is no time zone"),
        ("+02:00", "there is no time zone"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_name(name: str, advice: str) -> None:
    with pytest.raises(InvalidValue, match="there is no time zone") as refused:
        zone(name)

    assert advice in str(refused.value)
    assert "localtime'?" not in str(refused.value)


@pytest.mark.parametrize("name", ["Europe", "America/Argentina", "Europe/", "/", ".", "Europe/Stockholm/"])
def test_a_folder_of_zones_is_no_zone(name: str) -> None:
    with pytest.raises(InvalidValue, match="there is no time zone"):
        zone(name)


@pytest.mark.parametrize("name", [None, 1, b"UTC", UTC, ["UTC"]])
def test_a_zone_is_given_by_its_name(name: object) -> None:
    nonsense: Any = name

    with pytest.raises(InvalidValue, match="a time zone is given by its name, as in 'Europe/Stockholm', not by"):
        zone(nonsense)


def test_a_huge_name_makes_a_short_message() -> None:
    with pytest.raises(InvalidValue) as refused:
        zone("Europe/" * 100_000)

    assert len(str(refused.value)) < 200


def test_no_file_outside_of_the_zone_data_is_read(own_data: Path) -> None:
    (own_data / "Inside").write_bytes(a_zone_file())
    outside = own_data.parent / "Outside"
    outside.write_bytes(a_zone_file())

    assert datetime(2026, 1, 1, tzinfo=zone("Inside")).utcoffset() == timedelta(hours=5, minutes=30)
    for name in ("../Outside", "./../Outside", "Inside/../../Outside", str(outside), f"/{outside}", "..\\Outside"):
        with pytest.raises(InvalidValue, match="there is no time zone"):
            zone(name)


def test_a_file_that_holds_no_zone_is_refused(own_data: Path) -> None:
    (own_data / "Empty").write_bytes(b"")
    (own_data / "Text").write_text("not a zone")

    for name in ("Empty", "Text"):
        with pytest.raises(InvalidValue, match=f"there is no time zone '{name}'"):
            zone(name)


@pytest.mark.usefixtures("own_data")
def test_without_zone_data_the_advice_is_to_install_some() -> None:
    with pytest.raises(InvalidValue, match="this machine has no zone data, so install the package 'tzdata'"):
        zone("Europe/Stockholm")


@pytest.mark.usefixtures("own_data")
def test_utc_needs_no_zone_data() -> None:
    assert zone("UTC") is UTC
