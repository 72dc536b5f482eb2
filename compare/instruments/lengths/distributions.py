"""The lengths that inputs have: real ones, uniform ones, and those in a file of the user's."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from compare.workloads.data import source_lines, syntax_trees
from compare.workloads.data.sources import sample

Draw = Callable[[int, int, int], tuple[int, ...]]
"""`draw(count, seed, longest)` gives that many lengths from 2 to `longest`."""

SHORTEST = 2
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
    """`count` lengths of a distribution, from 2 to `longest`. Equal arguments give equal lengths."""
    return DISTRIBUTIONS[name](count, seed, longest)
