"""The version of Windlass: here alone, for the package and for its code, which need not look it up at every start."""

VERSION = "0.1.0"
