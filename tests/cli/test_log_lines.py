import logging

import pytest

from windlass.cli.log_lines import LogLines


def record(name: str, said: str) -> logging.LogRecord:
    return logging.makeLogRecord({"name": name, "levelname": "WARNING", "levelno": logging.WARNING, "msg": said})


def test_a_warning_is_told_once_without_anything_that_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    lines = LogLines()

    for _ in range(2):
        lines.emit(record("windlass.redis", "odd \x1b[2J"))

    told = capsys.readouterr()
    assert (told.out, told.err.count("warning: odd"), "\x1b" in told.err) == ("", 1, False)


def test_what_a_store_keeps_is_not_told_at_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    LogLines().emit(record("windlass.durability", "the server at db:6379: appendonly is off"))

    assert capsys.readouterr() == ("", "")
