"""The moves: each reads what it is about, then does what `kit.moves` says."""
