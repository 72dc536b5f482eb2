"""Drawings of graphs: one model, one layout, and a writer for each format.

`diagram` is the model, and makes it from a graph. `groups` finds groups in it and folds a large one, and `layout` gives
each item its place. `pictures` and `text` write it; `drawing` makes pages, bitmaps and PDFs of it, and has
`GraphDrawing`, which does all of this on demand. `difference` marks what changed between two diagrams.
"""

from graphs.drawing.diagram import Body, Diagram, Item, Link, beside, of_graph
from graphs.drawing.difference import difference, mark_changes
from graphs.drawing.drawing import GraphDrawing, MappedBuffer, MemoryMap

__all__ = [
    "Body", "Diagram", "GraphDrawing", "Item", "Link", "MappedBuffer", "MemoryMap", "beside", "difference",
    "mark_changes",
    "of_graph",
]  # fmt: skip
