import logging
import os
import re
import threading
from pathlib import Path

import pytest

from tests.http.given_tokens import SECRET, a_token
from windlass.core.errors import InvalidValue
from windlass.http.token_file import LARGEST, TokenFile, change_file, read_file
from windlass.http.token_table import written_tokens
from windlass.http.tokens import KnownToken, hash_of, new_secret
from windlass.testing import FakeClock

OTHER = "wl_" + "b" * 43


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "tokens.toml"
    write(found, a_token())
    return found


def write(path: Path, *tokens: KnownToken) -> None:
    change_file(path, lambda _: tokens)


def names(path: Path) -> list[str]:
    return [each.name for each in read_file(path)]


def test_a_token_of_the_file_is_found(path: Path) -> None:
    tokens = TokenFile(path)

    assert tokens.find(SECRET) == a_token()
    assert tokens.find(OTHER) is None
    assert tokens.still_known(hash_of(SECRET)) == a_token()
    assert tokens.still_known(hash_of(OTHER)) is None


def test_a_changed_file_is_read_again_after_a_second_and_not_before(path: Path, clock: FakeClock) -> None:
    tokens = TokenFile(path, clock=clock)
    write(path, a_token(OTHER, name="new"))

    clock.advance(0.9)
    assert tokens.find(OTHER) is None
    assert tokens.find(SECRET) is not None
    clock.advance(0.1)
    assert tokens.find(OTHER) is not None
    assert tokens.find(SECRET) is None


def test_a_file_that_did_not_change_is_not_read_again(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = TokenFile(path, clock=clock)

    def forbidden(_: Path) -> None:
        pytest.fail("it was read")

    monkeypatch.setattr("windlass.http.token_file.read_file", forbidden)

    clock.advance(5)

    assert tokens.find(SECRET) is not None


@pytest.mark.parametrize("harm", ["text", "mode", "gone", "folder", "bytes"])
def test_a_broken_new_version_is_logged_once_and_the_old_one_stays(
    path: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture, harm: str
) -> None:
    tokens = TokenFile(path, clock=clock)
    caplog.set_level(logging.INFO)

    break_file(path, harm)
    for _ in range(3):
        clock.advance(1)
        assert tokens.find(SECRET) is not None

    assert [each.levelname for each in caplog.records] == ["ERROR"]
    assert str(path) in caplog.text
    assert "go on to hold" in caplog.text


def break_file(path: Path, harm: str) -> None:
    match harm:
        case "text":
            path.write_text("[[token]]\nname = 'ci'\nroles = ['boss']")
        case "mode":
            path.chmod(0o644)
        case "gone":
            path.unlink()
        case "bytes":
            path.write_bytes(b"\xff\xfe")
        case _:
            path.unlink()
            path.mkdir()


def test_a_file_that_is_mended_holds_again(path: Path, clock: FakeClock) -> None:
    tokens = TokenFile(path, clock=clock)
    path.unlink()
    clock.advance(1)
    tokens.find(SECRET)

    write(path, a_token(OTHER, name="new"))
    clock.advance(1)

    assert tokens.find(OTHER) is not None
    assert tokens.find(SECRET) is None


def test_an_empty_file_lets_nobody_in(path: Path, clock: FakeClock) -> None:
    tokens = TokenFile(path, clock=clock)

    write(path)
    clock.advance(1)

    assert len(tokens) == 0
    assert tokens.find(SECRET) is None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o777])
def test_a_file_that_others_may_use_is_refused_with_advice(path: Path, mode: int) -> None:
    path.chmod(mode)

    with pytest.raises(InvalidValue, match=f"mode {mode:04o}.: run chmod 0600"):
        TokenFile(path)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_of_its_owner_alone_is_taken(path: Path, mode: int) -> None:
    path.chmod(mode)

    assert len(TokenFile(path)) == 1


def test_a_file_of_another_user_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if owner == 0:
        # what belongs to the administrator may be used by all who can read it
        assert len(TokenFile(path)) == 1
        os.chown(path, 4242, -1)

    with pytest.raises(InvalidValue, match="belongs to another user"):
        TokenFile(path)


@pytest.mark.parametrize(
    "place,said",
    [("none.toml", "windlass token new"), ("none/none.toml", "windlass token new"), (".", "no ordinary file")],
)
def test_a_file_that_is_not_there_is_refused_with_advice(tmp_path: Path, place: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        TokenFile(tmp_path / place)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)

    with pytest.raises(InvalidValue, match="no ordinary file"):
        TokenFile(tmp_path / "pipe")


def test_a_file_that_is_far_too_large_is_refused(path: Path) -> None:
    path.write_bytes(b"#" * (LARGEST + 1))

    with pytest.raises(InvalidValue, match="larger than"):
        TokenFile(path)


def test_a_new_file_belongs_to_its_owner_alone_whatever_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write(tmp_path / "new.toml", a_token())
    finally:
        os.umask(before)

    assert (tmp_path / "new.toml").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["new.toml"]


def test_a_symbolic_link_is_not_written_through(tmp_path: Path, path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    before = path.read_bytes()

    with pytest.raises(InvalidValue, match="symbolic link"):
        write(link, a_token(OTHER))

    assert path.read_bytes() == before
    assert link.is_symlink()


def test_a_link_that_leads_nowhere_makes_no_file(tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(tmp_path / "elsewhere.toml")

    with pytest.raises(InvalidValue, match="symbolic link"):
        write(link, a_token())

    assert not (tmp_path / "elsewhere.toml").exists()


def test_a_file_that_cannot_be_read_is_not_written_over(path: Path) -> None:
    path.write_text("mine = true")

    with pytest.raises(InvalidValue, match="means nothing"):
        change_file(path, lambda before: [*before, a_token(OTHER, name="new")])

    assert path.read_text() == "mine = true"


def test_a_write_that_fails_leaves_the_file_and_nothing_beside_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(_: object) -> None:
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", no_room)

    with pytest.raises(InvalidValue, match="cannot be written: No space left on device"):
        write(path, a_token(OTHER))

    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="cannot be written: No such file or directory"):
        write(tmp_path / "none" / "tokens.toml", a_token())


def test_of_many_who_add_a_token_at_once_none_is_lost(path: Path) -> None:
    def add(number: int) -> None:
        change_file(path, lambda before: [*before, a_token(new_secret(), name=f"t{number}")])

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(names(path)) == sorted(["ci", *(f"t{number}" for number in range(8))])


def test_the_text_of_the_file_is_plain_toml(path: Path) -> None:
    assert path.read_text() == written_tokens([a_token()])
    assert re.search(r"^sha256 = \"[0-9a-f]{64}\"$", path.read_text(), re.MULTILINE)
