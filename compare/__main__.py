"""`python -m compare` is the command `graphduel`, whatever lies beside `compare` on the path."""

from compare.measure.start import keep_to_home

if __name__ == "__main__":
    keep_to_home()

    from compare.cli import main

    main()
