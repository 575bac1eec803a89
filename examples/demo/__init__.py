"""`make demo`: a thousand jobs on one SQLite file, while a worker is killed and another one is paused."""
