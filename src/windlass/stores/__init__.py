"""Where jobs live: one room per store, and none imports another. `windlass.connect` chooses by URL."""
