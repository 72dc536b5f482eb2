"""The models that read sequences, one with a loop over the length, one without, and the lengths that inputs have."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from compare.workloads import encoder_text, rnn_text
from compare.workloads.base import Example
from compare.workloads.data import VOCABULARY_SIZE, sample, source_lines, syntax_trees

Draw = Callable[[int, int, int], tuple[int, ...]]
"""`draw(count, seed, longest)` gives that many lengths from 2 to `longest`."""

SHORTEST = 2
_SENTENCE = re.compile(r"[.!?](?:\s+|$)")


def _sentences(count: int, seed: int, longest: int) -> tuple[int, ...]:
    def count_lengths(source: bytes) -> Iterator[int]:
        lengths = (len(sentence.split()) for text in _docstrings(source) for sentence in _SENTENCE.split(text))
        return (length for length in lengths if SHORTEST <= length <= longest)

    return sample(count_lengths, count, seed)


def _docstrings(source: bytes) -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield text


def _uniform(count: int, seed: int, longest: int) -> tuple[int, ...]:
    rng = random.Random(seed)
    return tuple(rng.randint(SHORTEST, longest) for _ in range(count))


DISTRIBUTIONS: Mapping[str, Draw] = MappingProxyType(
    {
        "lines": lambda count, seed, longest: tuple(map(len, source_lines(count, seed, longest))),
        "sentences": _sentences,
        "trees": lambda count, seed, longest: tuple(tree.nodes for tree in syntax_trees(count, seed, longest)),
        "uniform": _uniform,
    }
)
"""Characters in lines of source, words in sentences of docstrings, nodes in syntax trees; all numbers alike."""


def draw_lengths(name: str, count: int, seed: int, longest: int) -> tuple[int, ...]:
    """`count` lengths of a distribution, from 2 to `longest`. Equal arguments give equal lengths."""
    return DISTRIBUTIONS[name](count, seed, longest)


Loss = Callable[..., Any]


@dataclass(frozen=True)
class SequenceModel:
    """What a model is in every form that a strategy asks for; an example is arrays of one axis, its length.

    loss             `loss(params, *example)`, of one example
    masked           `masked(params, *example, mask)`, of one padded example
    batched          `batched(params, *examples, mask)`, the mean over the examples of a padded batch
    scanned          `loss` with its loop over the length as one op; None where there is no such loop
    batched_scanned  `batched` so
    """

    name: str
    init: Callable[[int, int], Any]
    example: Callable[[np.random.Generator, int], Example]
    loss: Loss
    masked: Loss
    batched: Loss
    scanned: Loss | None = None
    batched_scanned: Loss | None = None


@dataclass(frozen=True)
class Stream:
    """A model with its parameters, and examples of given lengths; `batch` of them make a batch."""

    model: SequenceModel
    params: Any
    examples: tuple[Example, ...]
    lengths: tuple[int, ...]
    batch: int


def stream(name: str, lengths: Sequence[int], width: int, batch: int, seed: int = 0) -> Stream:
    """Examples of these lengths for the model of that name. Their characters are made up: no time depends on them."""
    model, rng = MODELS[name], np.random.default_rng(seed)
    examples = tuple(model.example(rng, length) for length in lengths)
    return Stream(model, model.init(width, max(lengths)), examples, tuple(lengths), batch)


def _text(rng: np.random.Generator, length: int) -> Example:
    return rnn_text.shift_line(rng.integers(0, VOCABULARY_SIZE, length + 1))


def _hidden_example(rng: np.random.Generator, length: int) -> Example:
    return encoder_text.hide_characters(rng, rng.integers(0, VOCABULARY_SIZE, length))


MODELS: Mapping[str, SequenceModel] = MappingProxyType(
    {
        "rnn_text": SequenceModel(
            "rnn_text",
            lambda width, _: rnn_text.init(width),
            _text,
            rnn_text.loss,
            rnn_text.masked_loss,
            rnn_text.batched_loss,
            rnn_text.scanned_loss,
            rnn_text.batched_scanned_loss,
        ),
        "encoder_text": SequenceModel(
            "encoder_text",
            encoder_text.init,
            _hidden_example,
            encoder_text.loss,
            encoder_text.masked_loss,
            encoder_text.masked_loss,
        ),
    }
)
"""By the workload that each is taken from."""
