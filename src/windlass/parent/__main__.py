"""The program of a child process: `python -m windlass.parent`, which the parent starts."""

from windlass.parent.child import main

if __name__ == "__main__":
    main()
