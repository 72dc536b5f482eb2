"""Code for processors that need not be here: its loops keep in registers what they add up. Nothing of it runs."""

from __future__ import annotations

import re

import pytest

import static
from benchmarks.programs import ROWS

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import link
from static.native.products import Matrix, Product, Turn, tile
from static.native.target import AVX2, AVX512, NEON, SWITCH, NativeError, host
from tests.helpers.slow import mostly_slow

TARGETS = {"AVX2": AVX2, "AVX-512": AVX512, "NEON": NEON}
SHAPES = [
    (64, 256, 256), (256, 64, 256), (6, 33, 16), (1, 100, 64), (2, 100, 40), (3, 64, 17), (4, 50, 32), (5, 64, 5),
    (7, 64, 48), (32, 32, 32), (128, 16, 128), (31, 1000, 10), (256, 784, 10),
]  # fmt: skip
REGISTER = {"AVX2": r"%ymm\d", "AVX-512": r"%zmm\d", "NEON": r"\bv\d+\.(4s|2d)"}


def product(rows, inner, columns, dtype):
    left, right, out = Matrix((), inner, 1), Matrix((), columns, 1), Matrix((), columns, 1)
    return Product(dtype, (), rows, inner, columns, left, right, out)


def assembly(recipe, target):
    return link.assembly(link.module({recipe: "kernel"}, target), target)


def inner_loops(text):
    """The blocks that end in a jump to their start, until there."""
    loops = []
    for block in re.split(r"\n(?=\.LBB\w+:)", text):
        jump = re.search(rf"\s(j\w+|b\.\w+)\s+{block.split(':')[0]}\b", block)
        if jump:
            loops.append(block[: jump.end()])
    return loops


def stack_operands(block):
    """How often a block reads or writes the stack; %rbp is a register as any other, since no frame is kept in it."""
    return len(re.findall(r"\(%rsp\b|\[sp\b", block))


def multiplications(block):
    return len(re.findall(r"\bvfn?m(?:add|sub)\w+p[sd]|\bfml[as]\b", block))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", mostly_slow(SHAPES, 4))
def test_product_loops_add_up_in_registers(name, dtype, shape):
    text = assembly(product(*shape, dtype), TARGETS[name])
    loops = [block for block in inner_loops(text) if multiplications(block)]
    assert loops
    assert re.search(REGISTER[name], loops[0])
    for block in loops:
        assert stack_operands(block) <= 0.1 * multiplications(block), block


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_tile_leaves_room_for_what_is_multiplied(name, dtype):
    target = TARGETS[name]
    for rows in range(70):
        for columns in range(1, 130):
            vectors, count = tile(rows, columns, dtype, target)
            across = target.parts(dtype, 16 * vectors)
            loaded = across if count > 1 else 0
            assert count * across + loaded < target.registers
            assert vectors <= -(-columns // 16)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_blocks_are_turned_in_registers(name, dtype):
    loops = inner_loops(assembly(Turn(dtype, 256, 256, 1, 256), TARGETS[name]))
    assert loops
    for block in loops:
        assert stack_operands(block) <= 0.05 * block.count("\n"), block


def test_few_registers_are_counted():
    assert tile(64, 256, "f4", AVX2) == (1, 6)
    assert tile(64, 256, "f8", AVX2) == (1, 2)
    assert tile(1, 256, "f4", AVX2) == (4, 1)
    assert tile(64, 256, "f4", AVX512) == (4, 6)


def test_the_switch_names_the_target(monkeypatch):
    monkeypatch.setenv(SWITCH, "x86-64-v3")
    assert host.__wrapped__() == AVX2
    monkeypatch.setenv(SWITCH, "pentium")
    with pytest.raises(NativeError, match=rf"{SWITCH} is 'pentium': it names one of x86-64-v3, x86-64-v4, or nothing"):
        host.__wrapped__()


@pytest.mark.parametrize("name", TARGETS)
def test_a_whole_step_is_code_for_any_target(name):
    row = ROWS["transformer T=32"]()
    exe = static.compile(static.value_and_grad(row.loss), row.params, *row.inputs, backend="native")
    recipes = {kernel.recipe: f"k{i}" for i, kernel in enumerate(exe.kernels)}
    text = link.assembly(link.module(recipes, TARGETS[name]), TARGETS[name])
    assert all(re.search(rf"^{kernel}:", text, re.MULTILINE) for kernel in recipes.values())
    assert re.search(REGISTER[name], text)
    assert ("zmm" in text) == (name == "AVX-512")
