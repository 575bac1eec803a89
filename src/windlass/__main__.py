"""`python -m windlass`: the command line, of this very interpreter."""

from windlass.cli import main

if __name__ == "__main__":
    main()
