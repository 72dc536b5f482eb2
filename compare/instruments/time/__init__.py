"""Time: the build, the first call of each shape, and blocks of steady steps, in rounds over all arms."""
