"""Long campaigns against the promises, with real processes: `make proof PART=processes`."""
