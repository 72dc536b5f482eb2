"""A drawing: a diagram that shows itself in a notebook, and that is written to a file of any format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from graphs.drawing import text
from graphs.drawing.folding import folded
from graphs.drawing.model import Diagram
from graphs.drawing.svg import svg
from graphs.drawing.viewer import Stage, viewer
from graphs.files import write_file


class GraphDrawing:
    """What `draw()` gives: `svg()`, `dot()`, `mermaid()`, `json()`, `html()`, and `save(path)` by the path's suffix.

    A graph of more than 150 nodes is folded to groups (repeated blocks, functions, lines of the user's), unless it is
    drawn with `unfold`. The HTML page opens and closes them; the JSON formats hold every node.
    """

    def __init__(self, diagram: Diagram, unfold: bool = False) -> None:
        self.whole = diagram
        self.shown = diagram if unfold else folded(diagram)
        self.stages: Sequence[Stage] = [Stage(diagram.title, "", diagram)]

    @classmethod
    def of_stages(cls, stages: Sequence[Stage], unfold: bool = False) -> GraphDrawing:
        """The drawing of the last of several stages, whose HTML page has a slider over all of them."""
        drawing = cls(stages[-1].diagram, unfold)
        drawing.stages = stages
        return drawing

    def svg(self) -> str:
        """The picture, as text."""
        return svg(self.shown)

    def dot(self) -> str:
        """The text that Graphviz reads."""
        return text.dot(self.shown)

    def mermaid(self) -> str:
        """The text that Mermaid reads."""
        return text.mermaid(self.shown)

    def json(self) -> str:
        """Items, links and boxes."""
        return text.as_json(self.whole)

    def model_explorer(self) -> str:
        """The JSON that Google's Model Explorer reads."""
        return text.model_explorer(self.whole)

    def html(self) -> str:
        """A page of its own, in which every group opens and closes; it needs nothing from a network."""
        return viewer(self.whole.title, self.stages)

    def save(self, path: str | Path) -> Path:
        """Write a file: .svg, .html, .dot, .mmd, .json, .model-explorer.json, .png or .pdf. Returns its path.

        Raises ValueError for another suffix.
        """
        path = Path(path)
        if path.suffix in (".png", ".pdf"):
            from graphs.drawing.painted import painted

            return write_file(path, painted(self.shown, path.suffix[1:]))
        return write_file(path, self._writer(path)().encode())

    def _writer(self, path: Path) -> Callable[[], str]:
        if path.name.endswith(".model-explorer.json"):
            return self.model_explorer
        writers = {".svg": self.svg, ".html": self.html, ".dot": self.dot, ".mmd": self.mermaid, ".json": self.json}
        if path.suffix not in writers:
            suffixes = ", ".join([*writers, ".model-explorer.json", ".png", ".pdf"])
            raise ValueError(f"a drawing is not written as {path.suffix or 'a file without suffix'}; use {suffixes}")
        return writers[path.suffix]

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        nodes = sum(item.count for item in self.shown.items)
        return f"GraphDrawing({self.shown.title}: {nodes:,} nodes in {len(self.shown.items):,} items)"
