"""The picture of the README: static ÷ dynamic for each workload of the reference run, in the first run and once warm.

`python -m docs.website.answer > docs/answer.svg` draws it again.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import log10
from pathlib import Path

VERDICTS = Path(__file__).resolve().parents[2] / "reports" / "reference" / "verdicts.json"
NAME = re.compile(r"(\w+) \((\w+)\): (steady state|one-off run), [\w-]+")
SIZES = ("small", "medium", "large")
WIDTH, LEFT, RIGHT, ROW, TOP = 530, 222, 518, 26, 142
TICKS = (0.1, 0.3, 1, 3, 10, 30, 100)
LOW, HIGH = 0.045, 115.0
STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 }
  .small { font-size: 13px; fill: #57606a }
  .grid { stroke: #d0d7de } .one { stroke: #57606a; stroke-width: 1.5 }
  .warm { fill: #0072b2; stroke: #0072b2 } .first { fill: #d55e00; stroke: #d55e00 }
  .range { stroke-width: 2.5; fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 } .grid { stroke: #3d444d } .one { stroke: #9198a1 }
    .warm { fill: #56b4e9; stroke: #56b4e9 } .first { fill: #f0883e; stroke: #f0883e }
  }
"""


@dataclass(frozen=True)
class Point:
    """A ratio static ÷ dynamic; its 95% interval where there is one."""

    ratio: float
    ends: tuple[float, float] | None


def cells(path: Path = VERDICTS) -> dict[str, dict[str, Point]]:
    """For each workload at the largest size of the run, the points by phase; where static gains most comes first."""
    (speed,) = (one for one in json.loads(path.read_text("utf-8")) if one["claim"] == "C6")
    found: dict[tuple[str, str], dict[str, Point]] = {}
    for regime in speed["regimes"]:
        if name := NAME.fullmatch(regime["name"]):
            low, high = regime["interval"] or (None, None)
            point = Point(regime["value"], (low, high) if low else None)
            found.setdefault((name[1], name[2]), {})[name[3]] = point
    largest = {workload: size for size in SIZES for workload, one in found if one == size}
    chosen = {f"{workload}, {size}": found[workload, size] for workload, size in largest.items()}
    return dict(sorted(chosen.items(), key=lambda item: item[1]["steady state"].ratio))


def svg(found: dict[str, dict[str, Point]]) -> str:
    """The picture."""
    height = TOP + ROW * len(found) + 40
    return "\n".join([*_head(height), *_axis(height - 36), *_rows(found), "</svg>\n"])


def _head(height: int) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    yield "<title>Time of the static engine ÷ time of the dynamic engine, by workload</title>"
    yield f"<style>{STYLE}</style>"
    yield '<text class="title" x="10" y="24">Time of static ÷ time of dynamic</text>'
    yield '<text x="10" y="46">Left of 1×, static is faster. Lines are 95% intervals.</text>'
    yield '<circle class="warm" cx="18" cy="68" r="5"/><text x="32" y="73">a step, once warm</text>'
    yield '<rect class="first" x="13" y="89" width="10" height="10"/>'
    yield '<text x="32" y="99">the first run from nothing, compilation included</text>'


def _axis(bottom: int) -> Iterator[str]:
    for tick in TICKS:
        x = _x(tick)
        kind = "one" if tick == 1 else "grid"
        yield f'<line class="{kind}" x1="{x}" x2="{x}" y1="{TOP - 14}" y2="{bottom}"/>'
        yield f'<text class="small" x="{x}" y="{bottom + 18}" text-anchor="middle">{tick:g}×</text>'


def _rows(found: dict[str, dict[str, Point]]) -> Iterator[str]:
    for row, (name, points) in enumerate(found.items()):
        y = TOP + ROW * row + 6
        yield f'<text x="{LEFT - 12}" y="{y + 5}" text-anchor="end">{name}</text>'
        for phase, point in points.items():
            kind = "warm" if phase == "steady state" else "first"
            x = _x(point.ratio)
            if point.ends:
                low, high = map(_x, point.ends)
                yield f'<path class="range {kind}" d="M{low} {y}H{high}"/>'
            shape = f'<circle class="{kind}" cx="{x}" cy="{y}" r="5"/>'
            square = f'<rect class="{kind}" x="{x - 5:.1f}" y="{y - 5}" width="10" height="10"/>'
            yield shape if kind == "warm" else square


def _x(ratio: float) -> float:
    share = log10(ratio / LOW) / log10(HIGH / LOW)
    return round(LEFT + (RIGHT - LEFT) * share, 1)


if __name__ == "__main__":
    sys.stdout.write(svg(cells()))
