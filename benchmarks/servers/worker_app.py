"""The app of the measurements that go by the command: `windlass worker benchmarks.servers.worker_app:app`."""

import os

from benchmarks.servers.app import BenchApp

app = BenchApp(os.environ["WINDLASS_URL"]).app
