"""`python -m compare` is the command `graphduel`."""

from compare.cli import main

if __name__ == "__main__":
    main()
