"""Rules that write control flow: branches as nested Ifs, loops as Loops, whose bodies see the values around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import GraphProto

from graphs.ir import Graph, Node
from graphs.spec import TensorSpec
from static.exporting.arrays import reverse_axes
from static.exporting.writer import RULES, Names, OnnxWriter

_NUMBER, _FLAG = TensorSpec((), np.int64), TensorSpec((), np.bool_)


@RULES.for_op("part")
def part(w: OnnxWriter, node: Node, names: Names) -> Names:
    return names[node.attrs["number"]]


@RULES.for_op("switch")
def switch(w: OnnxWriter, node: Node, index: str, *operands: str) -> Names:
    """Write nested Ifs: each asks whether the index picks its branch or a later one."""
    return _write_choice(w, node.attrs["branches"], index, operands, 0)


def _write_choice(
    w: OnnxWriter, branches: Sequence[Graph], index: str, operands: Sequence[str], number: int
) -> list[str]:
    first, *rest = branches
    if not rest:
        return w.write_again(first, operands)
    specs = [output.spec for output in first.outputs]
    dtype = w.dtypes[index]
    later = index if dtype == np.bool_ else w("Greater", index, w.constant(number, dtype))
    names = w(
        "If",
        later,
        outputs=len(specs),
        then_branch=w.body(lambda: (specs, _write_choice(w, rest, index, operands, number + 1))),
        else_branch=w.body(lambda: (specs, w.write_again(first, operands))),
    )
    return names if isinstance(names, list) else [names]


Turn = Callable[[str, list[str]], tuple[str, list[str], list[str]]]  # (number, state) -> (goes on, state, rows)


def _loop(
    w: OnnxWriter, limit: str, going: str, state: Sequence[str], specs: Sequence[TensorSpec],
    rows: Sequence[TensorSpec], turn: Turn,
) -> list[str]:  # fmt: skip
    """Write a Loop over a state of these specs; return the last state, then each turn's rows, stacked."""
    body = _body(w, specs, rows, turn)
    names = w("Loop", limit, going, *state, outputs=len(specs) + len(rows), body=body)
    return names if isinstance(names, list) else [names]


def _body(w: OnnxWriter, specs: Sequence[TensorSpec], rows: Sequence[TensorSpec], turn: Turn) -> GraphProto:
    number, going, *state = (w.name(stem) for stem in ("turn", "going", *["state"] * len(specs)))

    def write() -> tuple[list[TensorSpec], list[str]]:
        onwards, following, made = turn(number, list(state))
        return [_FLAG, *specs, *rows], [onwards, *following, *made]

    named = zip([number, going, *state], [_NUMBER, _FLAG, *specs], strict=True)
    return w.body(write, [w.takes(name, spec) for name, spec in named])


@RULES.for_op("while_loop")
def while_loop(w: OnnxWriter, node: Node, *names: str) -> Names:
    """Write a while loop as a Loop; with `save` it also stacks the state before each turn, for the gradient."""
    carry, condition, body = node.attrs["carry"], node.attrs["condition"], node.attrs["body"]
    start, outer = names[:carry], names[carry:]
    specs = [source.spec for source in node.inputs[:carry]]

    def turn(number: str, state: list[str]) -> tuple[str, list[str], list[str]]:
        following = w.write_again(body, [*state, *outer])
        (onwards,) = w.write_again(condition, [*following, *outer])
        return onwards, following, state if node.attrs["save"] else []

    (going,) = w.write_again(condition, names)
    results = _loop(w, "", going, start, specs, specs if node.attrs["save"] else [], turn)
    return [*results[:carry], results[carry:]]


@RULES.for_op("while_loop_gradient")
def while_loop_gradient(w: OnnxWriter, node: Node, history: list[str], *names: str) -> Names:
    """Write a Loop of one turn per saved state, read from the last to the first, or from the first to the last."""
    carry, step, reverse = node.attrs["carry"], node.attrs["step"], node.attrs["reverse"]
    start, outer = names[:carry], names[carry:]
    count = w("Squeeze", w("Shape", history[0], start=0, end=1))
    last = w("Sub", count, w.constant(1, np.int64))

    def turn(number: str, state: list[str]) -> tuple[str, list[str], list[str]]:
        row = w("Sub", last, number) if reverse else number
        saved = [w("Gather", rows, row, axis=0) for rows in history]
        return w.constant(True), w.write_again(step, [*state, *saved, *outer]), []

    return _loop(w, count, "", start, [source.spec for source in node.inputs[1 : 1 + carry]], [], turn)


@RULES.for_op("scan")
def scan(w: OnnxWriter, node: Node, *names: str) -> Names:
    attrs, body = node.attrs, node.attrs["body"]
    carry, xs, save, reverse, length = (attrs[key] for key in ("carry", "xs", "save", "reverse", "length"))
    start, sequences, outer = names[:carry], names[carry : carry + xs], names[carry + xs :]
    specs = [source.spec for source in node.inputs[:carry]]
    rows = [TensorSpec(spec.shape[1:], spec.dtype) for spec in attrs["rows"]]
    count = w.number(length)
    last = w("Sub", count, w.constant(1, np.int64))

    def turn(number: str, state: list[str]) -> tuple[str, list[str], list[str]]:
        row = w("Sub", last, number) if reverse else number
        slices = [w("Gather", x, row, axis=0) for x in sequences]
        results = w.write_again(body, [*state, *slices, *outer])
        return w.constant(True), results[:carry], [*results[carry:], *(state if save else [])]

    results = _loop(w, count, "", start, specs, rows, turn)
    stacked = [reverse_axes(w, name, [0]) for name in results[carry:]] if reverse else results[carry:]
    return [*results[:carry], *stacked]
