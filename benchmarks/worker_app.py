"""The app of the measurements that go by the command: `windlass worker benchmarks.worker_app:app`."""

import os

from benchmarks.app import BenchApp

app = BenchApp(os.environ["WINDLASS_URL"]).app
