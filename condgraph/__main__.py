"""`python -m condgraph` is the command line."""

from condgraph.cli import main

if __name__ == "__main__":
    main()
