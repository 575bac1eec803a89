"""`windlass worker`: a small parent process, and the children that it starts, watches, restarts and stops."""
