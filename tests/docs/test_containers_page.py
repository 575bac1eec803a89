import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.docs.outside_settings import check_command, check_environment, check_grace
from tests.docs.pages import named, text_of
from tests.docs.plain_yaml import read

PAGE = "howto/run-in-containers.md"
IMAGE = named(PAGE, "dockerfile")["Dockerfile"].replace("\\\n", "")
COMPOSE = read(named(PAGE, "yaml")["compose.yaml"])
KUBERNETES = read(named(PAGE, "yaml")["statefulset.yaml"])
VARIABLES = dict(re.findall(r"(WINDLASS_\w+)=(\S+)", IMAGE))
NO_ZONE_DATA = "import sys; sys.modules['tzdata'] = None; from windlass.zone import zone; zone('Europe/Berlin')"


def line(instruction: str) -> str:
    """What stands behind an instruction that is given once."""
    [found] = re.findall(rf"^{instruction} (.*)$", IMAGE, re.MULTILINE)
    return str(found)


def test_the_image_runs_a_worker_as_process_one_and_not_as_root() -> None:
    check_command(json.loads(line("CMD")))
    check_environment(VARIABLES)
    assert line("USER") in line("RUN useradd")


def test_the_database_lies_in_the_volume() -> None:
    folder = Path(VARIABLES["WINDLASS_URL"].removeprefix("sqlite:///")).parent
    pod = KUBERNETES["spec"]["template"]["spec"]

    assert Path(line("VOLUME")) == folder
    for service in COMPOSE["services"].values():
        assert [volume.partition(":")[2] for volume in service["volumes"]] == [str(folder)]
    for container in pod["containers"]:
        assert [mount["mountPath"] for mount in container["volumeMounts"]] == [str(folder)]


def test_compose_gives_the_worker_time_to_stop() -> None:
    worker = COMPOSE["services"]["worker"]

    check_command(worker["command"])
    check_grace(timedelta(seconds=int(worker["stop_grace_period"].removesuffix("s"))))
    assert worker["healthcheck"]["test"] == ["CMD", "windlass", "doctor"]


def test_kubernetes_gives_the_worker_time_to_stop_and_runs_it_once() -> None:
    spec = KUBERNETES["spec"]
    pod = spec["template"]["spec"]

    check_grace(timedelta(seconds=pod["terminationGracePeriodSeconds"]))
    assert spec["replicas"] == 1
    assert str(pod["securityContext"]["runAsUser"]) in line("RUN useradd")
    assert [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]] == ["jobs"]


def test_without_zone_data_the_error_is_the_one_of_the_page() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_ZONE_DATA],
        env={**os.environ, "PYTHONTZPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr.splitlines()[-1].partition(": ")[2] in text_of(PAGE)


@pytest.mark.parametrize("text", ["a: 1\n  b: 2\n", "a: 1\na: 2\n", "a: {b: 1}\n", "- a\nb: 1\n"])
def test_what_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        read(text)
