"""A diagram as SVG, in the colours of a light and a dark page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphs.drawing.diagram import Body, Diagram, Item, Look
from graphs.drawing.layout import LINE, PADDING, TITLE, Layout, Point, Rectangle, lay_out, saved_text
from graphs.errors import escape_html

MARGIN = 14.0
LEGEND = 30.0
WORDS: dict[Look, str] = {
    "input": "input",
    "constant": "constant",
    "forward": "forward",
    "backward": "backward",
    "added": "added",
    "removed": "removed",
    "rewritten": "reads other nodes",
}
"""Each look, told apart by its colour, its outline and its sign."""

SIGNS: dict[Look, str] = {"backward": "∇", "added": "+", "removed": "−", "rewritten": "~"}
"""What stands before the label of these."""

# Okabe and Ito's colours, which people with any colour vision tell apart.
STYLE = """
.gd{--paper:#fff;--ink:#1c1c1c;--soft:#5c5c5c;--edge:#8a8a8a;--input:#e8f1f8;--forward:#0072b2;--backward:#b8500a;--fill:#f5f9fd;--warm:#fdf1e8;
--saved:#00694e;--box:#f5f5f2;--added:#00694e;--removed:#a3407a;--rewritten:#7a5c00}
@media (prefers-color-scheme:dark){.gd{--paper:#16181b;--ink:#eceae4;--soft:#b3b0a8;--edge:#8d8d8d;--input:#1d3242;
--forward:#56b4e9;--backward:#e69f00;--fill:#16242f;--warm:#2f2412;--saved:#3fd0a5;--box:#1f2226;--added:#3fd0a5;--removed:#e79ac4;--rewritten:#f0e442}}
.gd text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:var(--ink);text-anchor:middle}
.gd .d{font-size:11px;fill:var(--soft)}.gd .s{font-size:11px;fill:var(--saved);font-weight:600}
.gd .t,.gd .k{text-anchor:start;font-size:12px;fill:var(--soft)}
.gd .n{fill:var(--paper);stroke-width:1.6}.gd .forward{stroke:var(--forward);fill:var(--fill)}
.gd .backward{stroke:var(--backward);fill:var(--warm);stroke-dasharray:6 3}
.gd .input{stroke:var(--edge);fill:var(--input)}
.gd .constant{stroke:var(--edge);stroke-dasharray:2 3}.gd .added{stroke:var(--added);stroke-width:3}
.gd .rewritten{stroke:var(--rewritten);stroke-dasharray:8 3 2 3;stroke-width:3}
.gd .removed{stroke:var(--removed);stroke-dasharray:3 4;stroke-width:3}.gd .r{stroke-width:3.4}
.gd .b{fill:var(--box);stroke:var(--edge)}.gd path{fill:none;stroke:var(--edge);stroke-width:1.2}
.gd .i{stroke-dasharray:3 3}.gd marker path{fill:var(--edge);stroke:none}
"""


def svg(diagram: Diagram) -> str:
    """The picture as text. Hovering over an item shows its spec, options and lines of source."""
    layout = lay_out(diagram)
    looks = list(dict.fromkeys(item.look for item in diagram.items))
    width = max(layout.width, sum(_entry_width(word) for word, _ in _entries(looks, diagram))) + 2 * MARGIN
    height = layout.height + 2 * MARGIN + LEGEND
    body = "".join(
        [
            *(_box(box, layout) for box in diagram.boxes),
            *_links(diagram, layout),
            *(_item(item, layout.places[item.key]) for item in diagram.items),
        ]
    )
    label = escape_html(f"{diagram.title}: a graph of {sum(item.count for item in diagram.items):,} nodes")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gd" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{label}" '
        f'style="max-width:100%;height:auto;background:var(--paper)"><style>{STYLE}</style>'
        '<defs><marker id="gd-a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z"/></marker></defs>{_legend(looks, diagram)}'
        f'<g transform="translate({MARGIN:.0f} {MARGIN + LEGEND:.0f})">{body}</g></svg>'
    )


def _entries(looks: list[Look], diagram: Diagram) -> list[tuple[str, Look | None]]:
    """Words of the legend, each with the look of its sample."""
    entries: list[tuple[str, Look | None]] = [(f"{SIGNS.get(look, '')} {WORDS[look]}".strip(), look) for look in looks]
    if any(item.is_result for item in diagram.items):
        entries.append(("result", None))
    return entries


def _entry_width(word: str) -> float:
    return 44.0 + 7.4 * len(word)


def _legend(looks: list[Look], diagram: Diagram) -> str:
    x, parts = MARGIN, []
    for word, look in _entries(looks, diagram):
        place = Rectangle(x, MARGIN - 6, 20, 13)
        heavy = f'<rect class="n r" x="{x:.0f}" y="{MARGIN - 6:.0f}" width="20" height="13" style="stroke:var(--ink)"/>'
        parts.append(heavy if look is None else _outline(look, "", place))
        parts.append(f'<text class="k" x="{x + 26:.0f}" y="{MARGIN + 5:.0f}">{word}</text>')
        x += _entry_width(word)
    return "".join(parts)


def _box(box: Body, layout: Layout) -> str:
    x, y, w, h = layout.places[box.key]
    title = escape_html(box.title)
    return (
        f'<rect class="b" x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="6"/>'
        f'<text class="t" x="{x + PADDING:.1f}" y="{y + TITLE - 7:.1f}">{title}</text>'
    )


def _links(diagram: Diagram, layout: Layout) -> Iterator[str]:
    for link in diagram.links:
        source, target = layout.places[link.source], layout.places[link.target]
        kind = ' class="i"' if link.inside else ""
        between = layout.routes.get((link.source, link.target), ())
        yield f'<path{kind} d="{_curve([*ends(source, target, between)])}" marker-end="url(#gd-a)"/>'


def ends(source: Rectangle, target: Rectangle, between: Sequence[Point]) -> list[Point]:
    """The points of a link with its ends: from bottom to top, or from top to bottom where the target is higher."""
    if source.y < target.y:
        return [(source.centre, source.y + source.height), *between, (target.centre, target.y)]
    shift = min(source.width, target.width) / 4  # beside the link downwards
    return [(source.centre + shift, source.y), *between, (target.centre + shift, target.y + target.height)]


def _curve(points: Sequence[Point]) -> str:
    """Through these points, upright at each of them: downwards, or upwards as a folded loop does."""
    (x, y), *rest = points
    path = f"M{x:.1f} {y:.1f}"
    for a, b in rest:
        bend = (b - y) / 2
        path += f"C{x:.1f} {y + bend:.1f} {a:.1f} {b - bend:.1f} {a:.1f} {b:.1f}"
        x, y = a, b
    return path


def _item(item: Item, place: Rectangle) -> str:
    y = place.y
    lines = [("", label_with_sign(item)), (' class="d"', item.detail), (' class="s"', saved_text(item))]
    texts = [
        f'<text{style} x="{place.centre:.1f}" y="{y + PADDING / 2 + (i + 0.8) * LINE:.1f}">{escape_html(words)}</text>'
        for i, (style, words) in enumerate((style, words) for style, words in lines if words)
    ]
    outline = _outline(item.look, " r" if item.is_result else "", place)
    return f"<g><title>{escape_html(tooltip(item))}</title>{outline}{''.join(texts)}</g>"


def label_with_sign(item: Item) -> str:
    """The label, with a sign where the colour says more: backward, or what changed."""
    return f"{SIGNS[item.look]} {item.label}" if item.look in SIGNS else item.label


def _outline(look: Look, result: str, place: Rectangle) -> str:
    """A pill for an input, six sides for what is backward, and else a box."""
    x, y, w, h = place
    style = f"n {look}{result}"
    if look == "backward":
        left, right, c = x, x + w, 8
        points = [(left + c, y), (right - c, y), (right, y + h / 2), (right - c, y + h), (left + c, y + h)]
        text = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*points, (left, y + h / 2)])
        return f'<polygon class="{style}" points="{text}"/>'
    radius = h / 2 if look == "input" else 3
    where = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
    return f'<rect class="{style}" {where} rx="{radius:.0f}"/>'


def tooltip(item: Item) -> str:
    """All that is known of an item, on a line each."""
    many = ["" if item.count == 1 else f"{item.count:,} nodes"]
    lines = [", ".join(item.lines[:4]) + (" ..." if len(item.lines) > 4 else "")]
    said = [f"{item.key} {item.label}", item.detail, *many, item.options, saved_text(item), *lines]
    return "\n".join(line for line in said if line)
