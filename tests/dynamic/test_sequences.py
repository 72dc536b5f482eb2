"""LSTM and GRU along a sequence as one op: what their cells give step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
from dynamic import nn
from dynamic.nn import sequences
from dynamic.nn.recurrent import _STEPS
from graphs.testing import check_grads

KINDS: dict[str, Any] = {"lstm": nn.LSTM, "gru": nn.GRU}
each_kind = pytest.mark.parametrize("kind", KINDS)


def _arguments(kind: str, steps: int, batch: int, size: int, with_bias: bool = True) -> tuple[Any, ...]:
    random = np.random.default_rng(steps * 100 + batch * 10 + size)
    gates = 4 if kind == "lstm" else 3
    shapes = [(steps, batch, gates * size), (size, gates * size), (gates * size,)]
    shapes += [(batch, size)] * (2 if kind == "lstm" else 1)
    made = [random.normal(size=shape) for shape in shapes]
    return (*made[:2], made[2] if with_bias else None, *made[3:])


def _in_one(kind: str, gates: Any, weight: Any, bias: Any, *state: Any) -> Any:
    outputs, last = sequences.SEQUENCES[kind](gates, state, weight, bias)
    return g.sum(g.sin(outputs)) + sum(g.sum(g.cos(part)) for part in last)


def _by_steps(kind: str, gates: Any, weight: Any, bias: Any, *state: Any) -> Any:
    total = 0.0
    for t in range(gates.shape[0]):
        state = _STEPS[kind][1](gates[t], state, weight, bias)
        total = total + g.sum(g.sin(state[0]))
    return total + sum(g.sum(g.cos(part)) for part in state)


@given(st.sampled_from(list(KINDS)), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_values_and_gradients_are_those_of_the_steps(kind: str, steps: int, batch: int, size: int, bias: bool) -> None:
    arguments = _arguments(kind, steps, batch, size, bias)
    numbers = [number for number, value in enumerate(arguments) if value is not None]

    def value_and_gradients(f: Any) -> Any:
        value, gradients = dynamic.value_and_grad(lambda *args: f(kind, *args), argnums=numbers)(*arguments)
        return [value, *gradients]

    for ours, theirs in zip(value_and_gradients(_in_one), value_and_gradients(_by_steps), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@each_kind
def test_gradients_of_gradients(kind: str) -> None:
    arguments = _arguments(kind, 3, 2, 2)
    check_grads(lambda *args: _in_one(kind, *args), arguments, order=2, engine=dynamic)


@each_kind
def test_a_layer_is_one_node_of_the_tape(kind: str) -> None:
    layer = KINDS[kind](3, 2)
    nodes, _, _ = dynamic.tape_stats(layer(dynamic.randn(50, 4, 3))[0])
    assert nodes < 15


@each_kind
def test_one_that_reads_backwards(kind: str) -> None:
    """The other direction, of the reversed sequence, by the same weights."""
    layer, xs = KINDS[kind](3, 2, bidirectional=True), dynamic.randn(5, 4, 3)
    for name, param in list(layer.named_parameters()):
        if name.endswith("_reverse"):
            param.data.copy_(dict(layer.named_parameters())[name.removesuffix("_reverse")])
    there, back = np.split(layer(xs)[0].detach().numpy(), 2, axis=-1)
    other_way = layer(dynamic.flip(xs, (0,)))[0].detach().numpy()
    np.testing.assert_allclose(other_way[:, :, :2][::-1], back, rtol=1e-6)
    np.testing.assert_allclose(other_way[:, :, 2:][::-1], there, rtol=1e-6)


@each_kind
def test_states_of_another_dtype_and_no_steps_go_step_by_step(kind: str) -> None:
    arguments = [dynamic.tensor(value) for value in _arguments(kind, 2, 1, 2)]
    assert sequences.is_one_op(*arguments)
    assert not sequences.is_one_op(*arguments[:-1], arguments[-1].float())
    assert not sequences.is_one_op(arguments[0][:0], *arguments[1:])
    assert not sequences.is_one_op(*[argument.numpy() for argument in arguments])
