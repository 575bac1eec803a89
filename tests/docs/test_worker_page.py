import json
import logging
import re
import signal

from tests.docs.pages import rows
from windlass.cli.worker import FLAGS, worker
from windlass.exit_codes import ExitCode
from windlass.parent.log_format import JsonFormatter
from windlass.parent.signals import AT_ONCE, GRACEFUL

PAGE = "reference/worker.md"
ENDS = {what: code.strip("`") for what, _, code in rows(PAGE, "what happens")}
OF_THE_JOB = ("job_id", "kind", "queue", "attempt", "delivery", "worker", "tenant", "outcome", "seconds")


def test_the_page_has_every_option_that_is_no_setting() -> None:
    settings = {setting.flag for setting in FLAGS}

    told = {name for name, _ in rows(PAGE, "option")}

    assert told == {flag for option in worker.params for flag in option.opts if flag.startswith("--")} - settings | {
        "--help"
    }


def test_the_page_has_every_signal_with_the_exit_code_that_the_shell_gives_it() -> None:
    for number in GRACEFUL:
        assert any(what.startswith("first") and number.name in what for what in ENDS)
        assert ENDS[f"second {number.name}"] == str(128 + number)
    assert ENDS[f"{signal.Signals(AT_ONCE).name}, first or second"] == str(128 + AT_ONCE)


def test_every_exit_code_of_the_page_is_one_of_the_command_line() -> None:
    assert {int(code) for code in ENDS.values() if code} <= {int(code) for code in ExitCode}


def test_the_page_has_every_field_of_a_line_in_json() -> None:
    formatter = JsonFormatter(dict)
    formatter.server = "shop#1"
    facts = dict.fromkeys(OF_THE_JOB, 1)
    record = logging.makeLogRecord({"msg": "", "windlass": facts, "stack_info": "here"})

    told = [name for cell, _ in rows(PAGE, "field") for name in re.findall(r"\w+", cell)]

    assert told == list(json.loads(formatter.format(record)))
