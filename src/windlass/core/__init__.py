"""What Windlass decides, and nothing else: no I/O, no clock reading, no event loop, no third-party import."""
