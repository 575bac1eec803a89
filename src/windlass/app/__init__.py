"""Functions as jobs: the app, its handlers, and what an enqueue gives."""
