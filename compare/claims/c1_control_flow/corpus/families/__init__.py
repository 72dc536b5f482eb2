"""The programs, a file for each family, which lists its own in `PROGRAMS`."""
