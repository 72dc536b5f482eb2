"""What a kernel writes of a vector that is not full: its elements, and no byte beside them."""

from __future__ import annotations

import ctypes
import itertools
import re
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import link
from static.native import target as machines
from static.native.ir import LANES, LoopBuilder, cast
from static.native.target import AVX2, AVX512, TARGETS, _try_target, host
from tests.helpers import native_reference

INTEGERS = ("u1", "i2", "i4", "i8")
FLOATS = ("f4", "f8")
CASTS = [*itertools.product(INTEGERS, (*INTEGERS, *FLOATS)), *itertools.product(FLOATS, FLOATS)]
BESIDE = 0xA5
WRITES = {1: r"v?pextrb|movb", 2: r"v?pextrw|movw", 4: r"movl|v?movd|v?movss|v?pextrd|v?extractps"}


class Cast(NamedTuple):
    """A recipe: the first elements of a vector in another dtype, so many elements apart."""

    source: str
    target: str
    active: int
    step: int = 1

    def lower(self, target):
        """The kernel: its parameters are where it reads, and where it writes."""
        del target
        b = LoopBuilder([self.source, self.target])
        read, written = b.parameters
        vector = b.load(b.access(read, [], active=self.active))
        b.store(b.access(written, [], self.step, self.active), cast(b, vector, self.target))
        return b.kernel()


def writes(run, recipe):
    """What lies in memory after a kernel that wrote into its middle."""
    values = (np.arange(1, LANES + 1) * 0x0101_0101_0101_0101).astype(recipe.source)
    memory = np.full(64 * LANES, BESIDE, np.uint8)
    run([values.ctypes.data, memory.ctypes.data + 16 * LANES])
    return memory


def called(code):
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address)
    return lambda addresses: function(ctypes.addressof((ctypes.c_void_p * len(addresses))(*addresses)))


@pytest.mark.parametrize("name", ["this machine", *TARGETS])
@pytest.mark.parametrize("step", [1, 2])
def test_a_vector_that_is_not_full_writes_its_elements_alone(name, step, monkeypatch):
    monkeypatch.setenv(machines.CACHE_SWITCH, "off")
    target = TARGETS[name] if name in TARGETS else host()
    if reason := _try_target(target):
        pytest.skip(reason)
    recipes = [Cast(*dtypes, active, step) for dtypes in CASTS for active in (1, 2, 7, 9, 15)]
    codes = link.kernels(recipes, target)
    for recipe in recipes:
        actual = writes(called(codes[recipe]), recipe)
        expected = writes(lambda where, recipe=recipe: native_reference.run(recipe.lower(target), where, ()), recipe)
        np.testing.assert_array_equal(actual, expected, err_msg=str(recipe))


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=["AVX2", "AVX-512"])
def test_one_element_is_written_by_an_instruction_of_its_width(target):
    """LLVM takes a store of one lane that narrows integers for one of the wide integer."""
    recipes = {
        Cast(source, narrow, 1): f"k{source}{narrow}"
        for source in INTEGERS
        for narrow in INTEGERS
        if int(narrow[1]) < int(source[1])
    }
    text = link.assembly(link.module(recipes, target), target)
    for recipe, name in recipes.items():
        body = re.search(rf"^{name}:\n(.*?)^\s+retq", text, re.MULTILINE | re.DOTALL).group(1)
        stores = re.findall(r"^\s+(\w+)\s+.*, *-?\d*\(%r\w+[^)]*\)(?: \{%k\d\})?$", body, re.MULTILINE)
        assert len(stores) == 1, body
        assert re.fullmatch(WRITES[int(recipe.target[1])], stores[0]), (recipe, body)
