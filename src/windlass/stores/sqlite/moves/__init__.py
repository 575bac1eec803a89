"""What the store writes, one file for each kind of move. Every function works inside a `Transaction`."""
