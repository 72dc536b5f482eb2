"""The instrument of time: the build, the first call of each shape, and blocks of steady steps, in rounds over all arms.

`measure` makes the records, and `rounds` reads the clocks.
"""
