"""The glossary of a page: words that a newcomer may not know, and the section with those that the page uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass

from compare.page.blocks import FoldedBlock, Section, Table, Terms

WORDS: Mapping[str, str] = {
    "arena": "One block of memory, planned when a graph is compiled, that holds all values of a step.",
    "break-even": "The number of runs after which compiling has paid for itself.",
    "bucket": "A range of sizes that share one compiled graph. Smaller inputs are padded to its upper end.",
    "cell": "One workload at one size.",
    "control": "A workload with a known outcome: one large matrix product takes equal time in both engines.",
    "kernel": "The NumPy function that computes an op. Both engines call the same ones.",
    "ladder": "The static engine with its optimisations switched on one after another. Each adds a rung.",
    "ledger": "The bytes of a step by their purpose, after each op.",
    "mode": "One way to run a workload: the dynamic engine, or the static engine with one shape policy.",
    "op": "One operation on arrays, such as add or matmul.",
    "padding": "Elements added to inputs so that several sizes become one.",
    "parity": "Equal outputs and gradients, within the tolerance of the dtype.",
    "plan": "Where each value of a step lies in the arena, decided when the graph is compiled.",
    "pool": "Memory that the dynamic engine keeps between runs instead of giving it back.",
    "proxy": "Something counted that should go with what the claim says, such as lines of code for effort.",
    "regime": "A condition under which a claim is judged on its own, such as a size of tensors or a kind of workload.",
    "replay": "The dynamic engine runs the last record again while nothing has changed.",
    "rung": "One level of the ladder: one optimisation more than the level below.",
    "shape policy": "How compiled code treats inputs of varying size: exact, symbolic, bucket or pad.",
    "steady state": "What a step takes once its time no longer changes from run to run.",
    "step": "What is measured: a call of the loss with its gradients, or of the function alone.",
    "symbolic": "A size with a name instead of a number: one compiled graph serves all sizes.",
    "tape": "The record that the dynamic engine makes of each run, to compute gradients from.",
    "trace": "To run a function once on values that are not known yet. The result is its graph.",
    "worker": "The fresh process that measures one cell, on one core.",
    "workload": "A function over ops that is measured, with its data and sizes.",
}
_FORMS = {"traced": "trace", "padded": "padding", "shape policies": "shape policy"}
_ANY = "|".join(sorted(map(re.escape, (*WORDS, *_FORMS)), key=len, reverse=True))
_WORD = re.compile(rf"(?<![-\w])(?:{_ANY})(?:s|es)?(?![-\w]| flow)", re.IGNORECASE)

_EACH = "Each word with what it means here; pointing at a word says it too"
NAME = "words"
"""The anchor of the section; each word has `words-WORD`."""


def section(sections: Iterable[Section]) -> Section | None:
    """Return the section with the glossary words that these sections use in sentences; None without any."""
    used = {word for text in _texts(tuple(sections)) for _, word in words_in(text) if word}
    rows = tuple((word, WORDS[word]) for word in sorted(used))
    return (
        Section("Words: what they mean on this page", (FoldedBlock(_EACH, (Terms(rows, NAME),)),), NAME)
        if rows
        else None
    )


def words_in(text: str) -> Iterator[tuple[str, str]]:
    """Split a text into pieces, each with its glossary word, which is "" for text between words."""
    end = 0
    for match in _WORD.finditer(text):
        yield text[end : match.start()], ""
        yield match[0], _base(match[0])
        end = match.end()
    yield text[end:], ""


def anchor(word: str) -> str:
    """Return the anchor of a word."""
    return f"{NAME}-{word.replace(' ', '-')}"


def _base(form: str) -> str:
    low = form.lower()
    singular = (low.removesuffix("s"), low.removesuffix("es"))
    return next(word for word in (low, _FORMS.get(low, low), *singular) if word in WORDS)


def _texts(value: object) -> Iterator[str]:
    """Yield every sentence in a block and the blocks inside it, without cells of tables and lines of code."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _texts(part)
    elif is_dataclass(value) and not isinstance(value, Table):
        for field in fields(value):
            if field.name not in _SILENT:
                yield from _texts(getattr(value, field.name))


_SILENT = frozenset({"name", "svg", "narrow", "anchor", "words", "lines", "alt", "table", "icon", "tone", "models"})
