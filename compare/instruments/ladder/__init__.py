"""The ladder: both engines rung by rung, each adding one thing, so that every difference has a cause.

From `tape`, the dynamic engine as it is, one rung leads to `pool`, and one to `replay`: the same kernels in a fixed
graph, without recording. From there each rung adds passes or the arena (`compare.instruments.ladder.rungs`). A
waterfall (`compare.page.figures.ladder`) is what the rungs of a cell say together.
"""
