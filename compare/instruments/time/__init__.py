"""The instrument of time: the build, the first call of each shape, and blocks of steady steps, in rounds over modes.

`measure` makes the records, and `rounds` reads the clocks.
"""
