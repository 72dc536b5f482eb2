"""Several graphs in one picture, each in a box of its own: a tape beside the graph that static traces."""

from __future__ import annotations

from dataclasses import replace

from graphs.drawing.model import Body, Diagram, Link


def beside(*diagrams: Diagram) -> Diagram:
    """The diagrams as one, each in a box with its title."""
    titles = [diagram.title for diagram in diagrams]
    items, links, boxes = [], [], []
    for number, diagram in enumerate(diagrams):
        name = f"{number}:"
        boxes.append(Body(name, diagram.title))
        boxes += [Body(name + part.key, part.title, name + part.around) for part in diagram.boxes]
        items += [replace(item, key=name + item.key, box=name + item.box) for item in diagram.items]
        links += [Link(name + part.source, name + part.target, part.inside) for part in diagram.links]
    code = {line: text for diagram in diagrams for line, text in diagram.code.items()}
    return Diagram(" beside ".join(titles), tuple(items), tuple(links), tuple(boxes), code)
