"""Runs one part: `python -m proofs PART`."""

from proofs.command import main

if __name__ == "__main__":
    raise SystemExit(main())
