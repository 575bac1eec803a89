"""The live view of `windlass top`."""
