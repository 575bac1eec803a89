"""A client that a generator makes of the OpenAPI document."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.http.in_process import TOKEN
from tests.http.in_thread import served_in_thread

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.json"
PROGRAM = """
import json
import sys

from windlass_api import AuthenticatedClient
from windlass_api.api.claims import claim, settle
from windlass_api.api.jobs import enqueue, job
from windlass_api.models import Ack, AckDo, ClaimRequest, EnqueueAsked, NewJob, SettleAsked

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2], raise_on_unexpected_status=True)
asked = EnqueueAsked(jobs=[NewJob(queue="email", payload={"to": "ada"}, priority=100)])
first = enqueue.sync(client=client, body=asked, idempotency_key="order-42")
again = enqueue.sync(client=client, body=asked, idempotency_key="order-42")
[held] = claim.sync(client=client, body=ClaimRequest(queues=["email"], limit=5, lease=30)).claims
ended = settle.sync(
    client=client,
    body=SettleAsked(settlements=[Ack(id=held.job.id, token=held.token, do=AckDo.ACK, result={"sent": True})]),
)
done = job.sync(client=client, id=held.job.id)
told = {
    "enqueued": first.jobs[0].id,
    "again": again.jobs[0].id,
    "claimed": held.job.id,
    "payload": held.job.payload.to_dict() if hasattr(held.job.payload, "to_dict") else held.job.payload,
    "settled": str(ended.settled[0].outcome),
    "state": str(done.state),
    "result": done.result.to_dict() if hasattr(done.result, "to_dict") else done.result,
}
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `windlass_api`."""
    folder = tmp_path_factory.mktemp("generated")
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from openapi_python_client.cli import app; app()", "generate"),
            *("--path", str(DOCUMENT), "--meta", "none", "--output-path", str(folder / "windlass_api")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # it warns of each operation or schema that it cannot make code of
    assert "Unable to parse" not in done.stdout, done.stdout
    return folder


def test_a_generated_client_enqueues_claims_and_settles(generated: Path, tmp_path: Path) -> None:
    with served_in_thread(f"sqlite:///{tmp_path}/jobs.db") as url:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, url, TOKEN], cwd=generated, capture_output=True, text=True, check=False
        )

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["enqueued"] == told["again"] == told["claimed"]
    assert (told["payload"], told["settled"], told["state"], told["result"]) == (
        {"to": "ada"}, "done", "succeeded", {"sent": True},
    )  # fmt: skip
