"""What compiling keeps: nothing that grows with how often it is done."""

from __future__ import annotations

import gc
import linecache

import numpy as np

import graphs as g
import static
from graphs import ir
from static.convert.rewrite import RewriteCache
from static.convert.stage import calls

X = np.ones(4, np.float32)
CELL = """
def chosen(x):
    if x[0] > {number}:
        return x * 2
    return x
"""


def test_specs_of_inputs_and_constants_are_known_after_the_first_graph():
    def compiled():
        static.compile(lambda x: x * np.float32(3) + g.tanh(x), X)

    compiled()
    before = len(ir._inferred)
    for _ in range(3):
        compiled()
    assert len(ir._inferred) == before


def test_rewritten_code_goes_with_the_code_that_it_was_made_of(monkeypatch):
    rewrite = RewriteCache(calls.OPERATORS)
    monkeypatch.setattr(calls, "_rewrite", rewrite)
    names = {}
    for number in range(5):
        file, text = f"<cell {number}>", CELL.format(number=number)
        monkeypatch.setitem(linecache.cache, file, (len(text), None, text.splitlines(True), file))
        exec(compile(text, file, "exec"), names)
        np.testing.assert_array_equal(static.jit(names["chosen"], convert=True)(X), X * 2 if number < 1 else X)
        gc.collect()
        assert len(rewrite._kept) <= 1
