"""Windlass by its server over HTTP, before a file, and beside it the same server on the file itself."""

from dataclasses import replace
from datetime import timedelta

import msgspec

from benchmarks.contestants.server import HOW, Served
from benchmarks.measuring.contestant import Contestant, Outcome, Role, Trial
from benchmarks.servers import http_serving
from benchmarks.servers.store_urls import MAIN, http_url, sqlite_url
from benchmarks.workloads.producer import fill_by_another


class ServedOverHttp(Served):
    """Measures the process that serves as well, which runs on the same cores."""

    def drain(self, trial: Trial, *, keep: timedelta) -> Outcome:
        """Drain a store that another process has filled."""
        fill_by_another(self.name, trial.folder, trial.jobs)
        serving = http_serving.serving(trial.folder, MAIN)
        before = serving.processor_seconds()
        outcome = self.run(self._drain(trial, keep))
        spent = serving.processor_seconds() - before
        more = {"serving_mib": serving.peak_mib(), "serving_cpu_us": spent / trial.jobs * 1e6}
        return msgspec.structs.replace(outcome, figures={**outcome.figures, **more})


HTTP = ServedOverHttp("windlass-server-http", http_url).contestant(
    f"{HOW}; over HTTP, before a file that a process of windlass serve has", lambda _: "FULL"
)
DIRECTLY: Contestant = replace(
    Served("directly-server", sqlite_url).contestant("the same server on the file itself", lambda _: "FULL"),
    role=Role.PEER,
)
