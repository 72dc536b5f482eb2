"""An SVG of matplotlib's in a third of its bytes, so that a report can be kept: what nobody sees is left out."""

from __future__ import annotations

import re
from collections import Counter

_TAG = re.compile(r"<[^>]+>")  # what stands in a text is never one: matplotlib escapes it
_PATH = re.compile(r' d="([^"]*)"')
_PLACE = re.compile(r' (x|y)="(-?\d+\.\d+)"')
_NUMBER = re.compile(r"-?\d+\.\d+")
_LETTER = re.compile(r"\s*([A-Za-z])\s*")
_AGAIN = re.compile(r"(L[^A-Z]*)\1+")  # points that were less than a tenth apart
_NO_TURN = re.compile(r' transform="rotate\(-0 [^"]*"')
_BETWEEN = re.compile(r">\n\s*<")
_NAME = re.compile(r' id="([^"]*)"')
_USED = re.compile(r'(?:url\(|href=")#([^")]*)')
_STYLE = re.compile(r' style="([^"]*)"')


def compact(svg: str) -> str:
    """The same picture: no line breaks, no name that nothing refers to, and lengths to a tenth of a point.

    Curves keep a hundredth: they are the small shapes of markers.
    """
    used = set(_USED.findall(svg))

    def tag(match: re.Match[str]) -> str:
        bare = _NAME.sub(lambda name: name[0] if name[1] in used else "", _NO_TURN.sub("", match[0]))
        return _PATH.sub(_path, _PLACE.sub(lambda place: f' {place[1]}="{_rounded(place[2], 1)}"', bare))

    return _BETWEEN.sub("><", _TAG.sub(tag, svg))


def _path(match: re.Match[str]) -> str:
    digits = 2 if "C" in match[1] else 1
    rounded = _NUMBER.sub(lambda number: _rounded(number[0], digits), match[1])
    short = _AGAIN.sub(r"\1", _LETTER.sub(lambda letter: letter[1], rounded.strip()))
    return f' d="{short}"'


def _rounded(number: str, digits: int) -> str:
    return f"{round(float(number), digits):g}" if abs(float(number)) < 1e5 else number


def with_classes(svg: str, prefix: str) -> str:
    """The styles that stand in the tags of an SVG more than once as classes, whose names begin with the prefix."""
    head, opening, body = svg.partition(">")
    counts = Counter(style for tag in _TAG.findall(body) for style in _STYLE.findall(tag))
    repeated = [style for style, times in counts.items() if times > 1]
    classes = {style: f"{prefix}{number}" for number, style in enumerate(repeated)}
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())

    def tag(match: re.Match[str]) -> str:
        return _STYLE.sub(lambda style: f' class="{classes[style[1]]}"' if style[1] in classes else style[0], match[0])

    return f"{head}{opening}<style>{rules}</style>{_TAG.sub(tag, body)}"
