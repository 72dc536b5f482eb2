"""Control flow: the branches and bodies of a padded graph beside those of the unpadded one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs.ir import Graph, Node
from graphs.ops import control as ops
from graphs.spec import TensorSpec
from static.padding.follow import RULES, Pairing, is_constant
from static.padding.marks import Bools, Mark, Marks, anything, each, first, flat, numbered, sound, specs_of, whole


def _between(graph: Graph, other: Graph) -> Callable[[Sequence[Any]], list[Marks]]:
    """The marks of what a pair of subgraphs returns, as a function of those of its inputs."""

    def outputs(inputs: Sequence[Any]) -> list[Marks]:
        beside = Pairing(graph, other, inputs)
        beside.walk()
        return beside.outputs

    return outputs


def _joined(mark: Marks, other: Marks) -> Marks:
    """What holds of both."""
    if not isinstance(mark, Mark):
        return tuple(map(_joined, mark, other))
    same = mark.certain & other.certain & (mark.value == other.value)
    copies = np.where(mark.copies == other.copies, mark.copies, -1)
    apart = not all(map(np.array_equal, mark.real, other.real))
    return sound(Mark(mark.taint | other.taint | apart, same, mark.value, mark.real, None, copies))


def _tainted(mark: Mark) -> Mark:
    return mark._replace(taint=np.ones_like(mark.taint), certain=np.zeros_like(mark.certain), upper=None, same=None)


def _switch(node: Node, other: Node, sources: Sequence[Any]) -> Marks:
    index, *operands = sources
    both = list(zip(node.attrs["branches"], other.attrs["branches"], strict=True))
    if is_constant(index):
        return tuple(_between(*both[min(max(int(index.value), 0), len(both) - 1)])(operands))
    joined = functools.reduce(_joined, [tuple(_between(*pair)(operands)) for pair in both])
    return each(_undecided, joined) if index.taint.any() else joined


def _undecided(mark: Mark) -> Mark:
    """What is known where it is the same in every branch, whichever both take."""
    return mark._replace(taint=mark.taint | ~mark.certain)


# Scans ------------------------------------------------------------------------------------------------------------


def _scan(node: Node, other: Node, sources: Sequence[Any]) -> Marks:
    """Step by step: those that the unpadded scan has too beside its own, the others beside doing nothing."""
    body, carry, xs, length = (node.attrs[key] for key in ("body", "carry", "xs", "length"))
    real = _steps(length, other.attrs["length"], sources[carry : carry + xs])
    sequences = [_in_step(x, real) for x in sources[carry : carry + xs]]
    outer, state = sources[carry + xs :], tuple(sources[:carry])
    step, alone = _between(body, other.attrs["body"]), _between(body, body)
    carried: Sequence[Node] = node.inputs[:carry]
    rows: dict[int, tuple[Mark, ...]] = {}
    for t in reversed(range(length)) if node.attrs["reverse"] else range(length):
        inputs = [*state, *(x.at(t) for x in sequences), *outer]
        entered = _apart(inputs, carried)
        results = step(inputs) if real[t] else alone(entered)
        rows[t] = (*results[carry:], *(state if node.attrs["save"] else ()))
        state = tuple(results[:carry]) if real[t] else tuple(map(_kept, state, results, entered))
        carried = body.outputs[:carry] if real[t] else carried
    if not rows:
        return (*state, *anything(node, other, ())[carry:])
    stacks = zip(*[rows[t] for t in range(length)], strict=True)
    return (*state, *map(functools.partial(_stacked, real), stacks, specs_of(other)[carry:]))


def _steps(length: int, true: int, sequences: Sequence[Mark]) -> Bools:
    """Which steps the unpadded scan has too: any as many may be taken, since the state is compared step by step."""
    fitting = (x.real[0] for x in sequences if np.count_nonzero(x.real[0]) == true)
    return next(fitting, np.arange(length) < true)


def _in_step(x: Mark, real: Bools) -> Mark:
    """A sequence, of which nothing is known where its rows go to other steps than in the unpadded scan."""
    return x if np.array_equal(x.real[0], real) else _tainted(x)._replace(real=(real, *x.real[1:]))


def _apart(inputs: Sequence[Marks], carried: Sequence[Node]) -> list[Marks]:
    """The inputs of a step that no unpadded one is beside: all real, and the elements of the state numbered.

    `carried` are the nodes that the state comes from: what is the same node has the same numbers.
    """
    all_real = [each(whole, mark) for mark in inputs]
    starts = np.cumsum([0, *(mark.taint.size for mark in inputs[: len(carried)])])
    for i, node in enumerate(carried):
        same = numbered(int(starts[carried.index(node)]), inputs[i].taint)
        all_real[i] = all_real[i]._replace(same=same)
    return all_real


def _kept(before: Mark, after: Mark, entered: Mark) -> Mark:
    """A state after a step that the unpadded scan does not take: it must be what it was before."""
    equal = before.certain & after.certain & (before.value == after.value)
    same = (after.copies == entered.copies) | equal
    upper = before.upper if same.all() else None
    return sound(Mark(before.taint | ~same, after.certain, after.value, before.real, upper))


def _stacked(real: Bools, marks: Sequence[Mark], spec: TensorSpec) -> Mark:
    """Rows one upon the other, of which those of real steps are real."""
    rows = [mark for mark, is_real in zip(marks, real, strict=True) if is_real]
    inner = rows[0].real if rows else first(marks[0].taint.shape, spec.shape[1:])
    apart = [is_real and not all(map(np.array_equal, m.real, inner)) for m, is_real in zip(marks, real, strict=True)]
    taint, certain, value = (
        np.stack(parts) for parts in zip(*((m.taint, m.certain, m.value) for m in marks), strict=True)
    )
    wrong = np.reshape(apart, (-1, *(1,) * (taint.ndim - 1)))
    return sound(Mark(taint | wrong, certain, value, (real, *inner)))


# Loops of unknown length -------------------------------------------------------------------------------------------


def _fixpoint(step: Callable[[tuple[Marks, ...]], Sequence[Marks]], state: tuple[Marks, ...]) -> tuple[Marks, ...]:
    """What holds of a state after any number of steps."""
    while True:
        after = tuple(map(_joined, state, step(state)))
        if all(map(_alike, flat(state), flat(after))):
            return after
        state = after


def _alike(mark: Mark, other: Mark) -> bool:
    return all(map(np.array_equal, (mark.taint, mark.certain, mark.copies), (other.taint, other.certain, other.copies)))


def _while(node: Node, other: Node, sources: Sequence[Any]) -> Marks:
    carry = node.attrs["carry"]
    start, outer = tuple(_joined(s, s) for s in sources[:carry]), sources[carry:]
    step, goes_on = (_between(node.attrs[key], other.attrs[key]) for key in ("body", "condition"))
    state = _fixpoint(lambda s: step([*s, *outer])[:carry], start)
    if goes_on([*state, *outer])[0].taint.any():
        state = each(_tainted, state)
    return (*state, state) if node.attrs["save"] else state


def _while_gradient(node: Node, other: Node, sources: Sequence[Any]) -> Marks:
    history, carry = sources[0], node.attrs["carry"]
    start, outer = tuple(_joined(s, s) for s in sources[1 : 1 + carry]), sources[1 + carry :]
    step = _between(node.attrs["step"], other.attrs["step"])
    state = _fixpoint(lambda s: step([*s, *history, *outer]), start)
    return each(_tainted, state) if all(m.taint.all() for m in flat(history)) else state


RULES.update(
    {
        ops.part: lambda node, other, sources: sources[0][node.attrs["number"]],  # noqa: ARG005  (a Rule)
        ops.switch_op: _switch,
        ops.scan_op: _scan,
        ops.while_op: _while,
        ops.while_gradient_op: _while_gradient,
    }
)
