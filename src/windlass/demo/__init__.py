"""`windlass demo`: a shop's background jobs under `windlass worker`, while its processes are killed and paused."""
