"""What the store writes, one file for each kind of move. Every move is a `Work`: see `work.py`."""
