"""What a page has its reader do: the files that it saves, its programs, its commands, and what it installs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
OWN = ROOT / "docs" / "own-function.md"
FRAMEWORKS = ROOT / "docs" / "frameworks.md"

FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUESTION = re.compile(r"(\*\*Predict:\*\* (?:.+\n?)+)?")
SAVED = re.compile(r"^```python file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    (?:\.venv/bin/)?(graphduel .+)$", re.MULTILINE)
INLINE = re.compile(r"`(graphduel [^`]*)`")
PLACE = re.compile(r"\b(?:mine\.py|reports/|examples/)")
"""What a command names that a reader has: others are forms, such as `FILE.py:FUNCTION`."""
MORE = re.compile(r"frameworks/|--framework|static-(?:native|onnxruntime)")
"""What a command names that needs more than graphduel."""
INSTALLED = re.compile(r"pip install (?:'(?:\.|graphduel)\[(\w+)\]'|(\w+)$)", re.MULTILINE)
MODE = re.compile(r"^\| `(static-\w+)` \|.*pip install '\.\[(\w+)\]'", re.MULTILINE)

PROGRAM = """
import contextlib, io, json, linecache, sys
namespace, printed = {"__name__": "model"}, []
for block in json.load(sys.stdin):
    linecache.cache["model.py"] = len(block), None, block.splitlines(True), "model.py"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(block, "model.py", "exec"), namespace)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""
"""The blocks of a page are one program: each goes on where the one before it stopped."""


def programs(page: Path) -> Iterator[tuple[str, str | None]]:
    """Each Python block with the text block that follows it, at once or after a question: what it prints, or None."""
    text = page.read_text("utf-8")
    fences = list(FENCE.finditer(text))
    for fence, following in zip_longest(fences, fences[1:]):
        if fence[1] == "python":
            between = following and text[fence.end() : following.start()].strip()
            told = following and following[1] == "text" and QUESTION.fullmatch(between)
            yield fence[3], following[3] if told else None


def saved(page: Path) -> dict[str, str]:
    """The files that a page has its reader save."""
    return dict(SAVED.findall(page.read_text("utf-8")))


def commands(page: Path) -> list[str]:
    """Commands on what a reader has, each once and in the order of the page, and one for the modes of extras."""
    text = FENCE.sub("", page.read_text("utf-8"))
    found = [(match.start(), match[1]) for pattern in (INDENTED, INLINE) for match in pattern.finditer(text)]
    written = dict.fromkeys(" ".join(command.split()) for _, command in sorted(found) if PLACE.search(command))
    modes = [mode for mode, _ in MODE.findall(text)]
    return [*written, *([f"graphduel compare mine.py:loss --modes dynamic,{','.join(modes)}"] if modes else [])]


def installed(page: Path) -> tuple[set[str], set[str]]:
    """The extras, and the other packages, that a page has its reader install."""
    found = INSTALLED.findall(page.read_text("utf-8"))
    return {extra for extra, _ in found if extra}, {package for _, package in found if package}
