"""Drawings of graphs: one model, one layout, and a writer for each format.

`adapt` makes a `Diagram` of a graph, `grouping` finds groups in it, `folding` makes a large one small, and `layout`
places what it holds. `svg`, `text` and `paint` write it; `viewer` makes a page in which its groups open and close.
`difference` tells what changed between two. `GraphDrawing` holds a diagram and does all of this when it is asked.
"""

from graphs.drawing.diagram import Body, Diagram, Item, Link, beside, of_graph
from graphs.drawing.difference import difference, mark_changes
from graphs.drawing.drawing import GraphDrawing, MappedBuffer, MemoryMap

__all__ = [
    "Body", "Diagram", "GraphDrawing", "Item", "Link", "MappedBuffer", "MemoryMap", "beside", "difference",
    "mark_changes",
    "of_graph",
]  # fmt: skip
