"""Windlass, the bare engine and its peers, measured beside each other in one run.

`python -m benchmarks` runs it; `README.md` beside this file says what each row means.
"""
