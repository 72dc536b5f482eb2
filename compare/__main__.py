"""Run the command `graphduel` as `python -m compare`, independent of other modules in the current folder."""

from compare.run.start import keep_to_home

if __name__ == "__main__":
    keep_to_home()

    from compare.cli import main

    main()
