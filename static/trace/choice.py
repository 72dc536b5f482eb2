"""A choice between two values, whose gradient reaches the chosen one alone; `where` passes a zero to the other.

A zero is no number that can be left out: times an infinite derivative it is NaN. While a graph is traced, and may be
differentiated, a choice is a switch whose branches compute nothing. The finished graph has `where` in its place
(`static/trace/lowering.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.builder import Builder
from graphs.ir import CONSTANT, Graph
from graphs.ops.control import switch_op
from graphs.ops.elementwise import where
from graphs.ops.movement import astype
from graphs.promotion import is_scalar
from graphs.spec import TensorSpec
from static.trace.control import emit, nodes_of
from static.trace.lowering import CHOICE
from static.trace.symbol import Symbol


def choice(test: Any, then: Any, otherwise: Any) -> Any:
    """`then` where a test of one bool holds, else `otherwise`: of one spec, or what `where` makes of them."""
    if is_scalar(then) or is_scalar(otherwise):
        return where(test, then, otherwise)
    then_node, else_node = nodes_of([then, otherwise])
    is_constant = then_node.op is CONSTANT and else_node.op is CONSTANT
    if is_constant or not then_node.spec.is_float or then_node.spec != else_node.spec:
        return where(test, then, otherwise)
    branches = _returning(1, [then_node.spec, else_node.spec]), _returning(0, [then_node.spec, else_node.spec])
    return emit(switch_op, [*nodes_of([astype(test, np.int64)]), then_node, else_node], {"branches": branches}, 1)[0]


def _returning(number: int, specs: Sequence[TensorSpec]) -> Graph:
    builder = Builder(CHOICE)
    inputs = [builder.input(f"arg{i}", spec) for i, spec in enumerate(specs)]
    return builder.finish([inputs[number]])


def chosen_by(index: Symbol) -> Any:
    """The test of a choice, by the index of its switch."""
    return astype(index, np.bool_)
