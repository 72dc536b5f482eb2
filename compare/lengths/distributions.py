"""The lengths that inputs have: real ones, uniform ones, and those in a file of the user's."""

from __future__ import annotations

import ast
import csv
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from compare.errors import CompareError
from compare.workloads.data import source_lines, syntax_trees
from compare.workloads.data.sources import sample

Draw = Callable[[int, int, int], tuple[int, ...]]
"""`draw(count, seed, longest)` gives that many lengths from 2 to `longest`."""

SHORTEST = 2
COLUMN = "length"
_SENTENCE = re.compile(r"[.!?](?:\s+|$)")


def _lines(count: int, seed: int, longest: int) -> tuple[int, ...]:
    return tuple(map(len, source_lines(count, seed, longest)))


def _sentences(count: int, seed: int, longest: int) -> tuple[int, ...]:
    def counted(source: bytes) -> Iterator[int]:
        lengths = (len(sentence.split()) for text in _docstrings(source) for sentence in _SENTENCE.split(text))
        return (length for length in lengths if SHORTEST <= length <= longest)

    return sample(counted, count, seed)


def _docstrings(source: bytes) -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield text


def _trees(count: int, seed: int, longest: int) -> tuple[int, ...]:
    return tuple(tree.nodes for tree in syntax_trees(count, seed, longest))


def _uniform(count: int, seed: int, longest: int) -> tuple[int, ...]:
    rng = random.Random(seed)
    return tuple(rng.randint(SHORTEST, longest) for _ in range(count))


DISTRIBUTIONS: Mapping[str, Draw] = MappingProxyType(
    {"lines": _lines, "sentences": _sentences, "trees": _trees, "uniform": _uniform}
)
"""Characters in lines of source, words in sentences of docstrings, nodes in syntax trees; all numbers alike."""


def drawn(name: str, count: int, seed: int, longest: int) -> tuple[int, ...]:
    """`count` lengths of a distribution, or from the file of that path, whatever is longest there.

    Equal arguments give equal lengths. Raises CompareError for a file that holds no lengths.
    """
    if name in DISTRIBUTIONS:
        return DISTRIBUTIONS[name](count, seed, longest)
    lengths = read(Path(name))
    return tuple(random.Random(seed).sample(lengths, count)) if len(lengths) > count else lengths


def read(path: Path) -> tuple[int, ...]:
    """The lengths in a CSV file: its column `length`, or its first where no column has that name.

    Raises CompareError naming the file, the line and the remedy for one that cannot be read, is no whole number from 1
    on, or where there are fewer than two.
    """
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise CompareError(f"{path} cannot be read: {error}; give a CSV file with one length a line") from error
    head = [cell.strip().lower() for cell in rows[0]] if rows else []
    column = head.index(COLUMN) if COLUMN in head else 0
    # a first line that is no number is a heading
    skipped = int(bool(head) and not head[column].lstrip("+-").isdecimal())
    lengths = tuple(
        _length(path, number, row, column) for number, row in enumerate(rows, 1) if number > skipped and row
    )
    if len(lengths) < SHORTEST:
        raise CompareError(f"{path} has {len(lengths)} lengths; give at least {SHORTEST}, one a line")
    return lengths


def _length(path: Path, number: int, row: list[str], column: int) -> int:
    text = row[column].strip() if column < len(row) else ""
    if not text.isdecimal() or int(text) < 1:
        raise CompareError(f"{path}:{number}: {text!r} is no length; each line holds a whole number from 1 on")
    return int(text)
