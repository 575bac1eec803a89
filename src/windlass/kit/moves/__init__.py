"""The moves of stores that hold jobs as records of Python: memory has all of them, SlateDB those of the moment."""
