"""LSTM and GRU along a whole sequence, one op each: the tape keeps one node in place of some ten for each step.

Only the dynamic engine has these ops. A trace takes the steps one by one (`dynamic/nn/recurrent.py`), as its passes
know more of simple ops. The input's part of the gates is computed before, for all steps; the state's part is added
here. As an op returns one array, the results of the steps are planes of one array. Backward computes all that does not
depend on the order of steps for all steps at once, and the gradient of the weight is one product.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynamic.tensor import Tensor
from graphs import dispatch, ops
from graphs.dims import Size
from graphs.op import Array, Op
from graphs.ops.elementwise import sigmoid
from graphs.ops.linalg import rows, transpose_matrix
from graphs.ops.shapes import dtype_of, shape_of
from graphs.spec import TensorSpec

State = tuple[Array, ...]
RunSequence = Callable[[Array, State, Array, Array], tuple[Array, State]]


def is_one_op(gates: Array, *others: Array | None) -> bool:
    """Whether to run a sequence of gates as one op: only on tensors, with steps, and all of one dtype."""
    alike = all(other is None or dtype_of(other) == dtype_of(gates) for other in others)
    return alike and issubclass(type(gates), Tensor) and len(gates) > 0


class GateCotangents(NamedTuple):
    """The cotangents of the gates from input and state, both f[T, N, gates]; and of the first states, each f[N, H]."""

    of_input: Array
    of_state: Array
    first: tuple[Array, ...]


def _infer(planes: int, gates: TensorSpec, hidden: TensorSpec) -> TensorSpec:
    return TensorSpec((planes, *gates.shape[:2], hidden.shape[-1]), gates.dtype)


def _cost(gates: TensorSpec, weight: TensorSpec, *_: TensorSpec, out: TensorSpec) -> Size:
    """The cost of the products, and some thirty operations for each element of the result."""
    return gates.size * weight.shape[0] * 2 + out.size * 30


def _weight_rule(cotangents: GateCotangents, z: Array, out: Array) -> Array:
    return ops.matmul(transpose_matrix(rows(_previous_states(out[0], z))), rows(cotangents.of_state))


def _previous_states(states: Array, first: Array) -> Array:
    """The state before each step."""
    return ops.concat([ops.expand_dims(first, 0), states[:-1]], axis=0)


def _reach(planes: Array) -> bool:
    """Whether a cotangent may be nonzero on these planes: only second derivatives read the gates."""
    return not isinstance(planes, np.ndarray) or bool(planes.any())


def _functions(values: tuple[Array, ...], *steps: Op) -> tuple[Callable[..., Array], ...]:
    """The functions that a loop over steps calls for ops: kernels for plain arrays without observers, else ops.

    On few numbers the dispatch of an op takes as long as its kernel.
    """
    are_plain = all(type(value) is np.ndarray for value in values)
    if are_plain and not dispatch.observers and not dispatch.detours:
        return tuple(op.kernel for op in steps)
    return tuple(functools.partial(_apply, op) for op in steps)


def _apply(op: Op, *inputs: Array, **attrs: int) -> Array:
    return op.apply(inputs, attrs)


def _slope(squashed: Array) -> Array:
    """The slope of a sigmoid, from its value."""
    return ops.multiply(squashed, ops.subtract(1, squashed))


def _tanh_slope(squashed: Array) -> Array:
    return ops.subtract(1, ops.square(squashed))


def _beside(*parts: Array) -> Array:
    """Concatenate arrays f[..., H] to f[..., gates * H]."""
    return ops.concat.apply(parts, {"axis": len(shape_of(parts[0])) - 1})


def _gates_first(gates: Array, size: int) -> Array:
    """[T, N, gates * H] as [T, gates, N, H]."""
    return gates.reshape(*gates.shape[:2], -1, size).swapaxes(1, 2)


def _by_gate(weight: Array) -> Array:
    """[H, gates * H] as [gates, H, H] in row-major order: BLAS reads small operands that lie so as they are."""
    return np.ascontiguousarray(weight.reshape(len(weight), -1, len(weight)).swapaxes(0, 1))


# LSTM -------------------------------------------------------------------------------------------------------------


def _lstm(gates: Array, weight: Array, hidden: Array, cell: Array) -> Array:
    """Run an LSTM: planes f[6, T, N, H] of hidden states, cells, and the gates i, f, g and o.

    The inputs are f[T, N, 4 H], f[H, 4 H], f[N, H] and f[N, H].
    """
    (steps, batch), size = gates.shape[:2], hidden.shape[-1]
    planes = np.empty((6, steps, batch, size), gates.dtype)
    gates, weights = _gates_first(gates, size), _by_gate(weight)
    for t in range(steps):
        total, made = np.matmul(hidden, weights), planes[:, t]
        np.add(total, gates[t], out=total)
        enter, forget, new, leave = sigmoid.kernel(total, out=made[2:])
        np.tanh(total[2], out=new)
        cell = np.add(np.multiply(forget, cell), np.multiply(enter, new), out=made[1])
        hidden = np.multiply(leave, np.tanh(cell), out=made[0])
    return planes


def _lstm_cotangents(g: Array, y: Array, out: Array, input3: Array) -> GateCotangents:
    cells, enter, forget, new, leave = (out[plane] for plane in range(1, 6))
    squashed = ops.tanh(cells)
    cell_of_hidden = ops.multiply(leave, _tanh_slope(squashed))
    of_both = _beside(
        ops.multiply(new, _slope(enter)),
        ops.multiply(_previous_states(cells, input3), _slope(forget)),
        ops.multiply(enter, _tanh_slope(new)),
        ops.multiply(squashed, _slope(leave)),
    )
    of_gates = None
    if _reach(g[2:]):
        slopes = _slope(enter), _slope(forget), _tanh_slope(new), _slope(leave)
        of_gates = _beside(*[ops.multiply(g[2 + gate], slope) for gate, slope in enumerate(slopes)])
    back, made = transpose_matrix(y), []
    hidden, cell = g[0, -1], g[1, -1]
    add, multiply, matmul, concat = _functions((g, y, out, input3), ops.add, ops.multiply, ops.matmul, ops.concat)
    for t in reversed(range(shape_of(out)[1])):
        cell = add(cell, multiply(hidden, cell_of_hidden[t]))
        reached = multiply(concat(cell, cell, cell, hidden, axis=1), of_both[t])
        made.append(reached if of_gates is None else add(reached, of_gates[t]))
        hidden, cell = matmul(made[-1], back), multiply(cell, forget[t])
        if t:
            hidden, cell = add(g[0, t - 1], hidden), add(g[1, t - 1], cell)
    gates = ops.stack(made[::-1])
    return GateCotangents(gates, gates, (hidden, cell))


lstm: Op = Op(
    "lstm",
    _lstm,
    lambda gates, weight, hidden, cell: _infer(6, gates, hidden),
    rules=(lambda g: g.of_input, _weight_rule, lambda g: g.first[0], lambda g: g.first[1]),
    common=_lstm_cotangents,
    cost=_cost,
    family="recurrent",
    listed=False,
)


def _lstm_sequence(gates: Array, state: State, weight: Array, bias: Array) -> tuple[Array, State]:
    planes = lstm(gates if bias is None else ops.add(gates, bias), weight, *state)
    return planes[0], (planes[0, -1], planes[1, -1])


# GRU --------------------------------------------------------------------------------------------------------------


def _gru(gates: Array, weight: Array, hidden: Array, bias: Array) -> Array:
    """Run a GRU: planes f[5, T, N, H] of hidden states, the gates r, z and n, and the state's part of n.

    The inputs are f[T, N, 3 H], f[H, 3 H], f[N, H] and f[3 H].
    """
    (steps, batch), size = gates.shape[:2], hidden.shape[-1]
    planes = np.empty((5, steps, batch, size), gates.dtype)
    gates, weights, bias = _gates_first(gates, size), _by_gate(weight), bias.reshape(3, 1, size)
    for t in range(steps):
        product, made = np.matmul(hidden, weights), planes[:, t]
        np.add(product, bias, out=product)
        reset, update = sigmoid.kernel(np.add(gates[t, :2], product[:2]), out=made[1:3])
        new, made[4] = made[3], product[2]
        np.tanh(np.add(gates[t, 2], np.multiply(reset, made[4])), out=new)
        hidden = np.add(new, np.multiply(update, np.subtract(hidden, new)), out=made[0])
    return planes


def _gru_cotangents(g: Array, y: Array, z: Array, out: Array) -> GateCotangents:
    states, reset, update, new, part = (out[plane] for plane in range(5))
    of_new = ops.multiply(ops.subtract(1, update), _tanh_slope(new))
    of_update = ops.multiply(ops.subtract(_previous_states(states, z), new), _slope(update))
    of_hidden = _beside(ops.multiply(of_new, ops.multiply(part, _slope(reset))), of_update, ops.multiply(of_new, reset))
    of_gates = None
    if _reach(g[1:]):
        g_new = ops.multiply(g[3], _tanh_slope(new))
        g_reset = ops.multiply(ops.add(g[1], ops.multiply(g_new, part)), _slope(reset))
        g_update = ops.multiply(g[2], _slope(update))
        of_gates = _beside(g_reset, g_update, ops.add(g[4], ops.multiply(g_new, reset)))
    back, made, hiddens = transpose_matrix(y), [], []
    hidden = g[0, -1]
    add, multiply, matmul, concat = _functions((g, y, z, out), ops.add, ops.multiply, ops.matmul, ops.concat)
    for t in reversed(range(shape_of(out)[1])):
        hiddens.append(hidden)
        reached = multiply(concat(hidden, hidden, hidden, axis=1), of_hidden[t])
        made.append(reached if of_gates is None else add(reached, of_gates[t]))
        hidden = add(multiply(hidden, update[t]), matmul(made[-1], back))
        if t:
            hidden = add(g[0, t - 1], hidden)
    of_state = ops.stack(made[::-1])
    reached = ops.multiply(ops.stack(hiddens[::-1]), of_new)
    reached = reached if of_gates is None else ops.add(reached, g_new)
    of_input = _beside(of_state[:, :, : 2 * shape_of(z)[-1]], reached)
    return GateCotangents(of_input, of_state, (hidden,))


gru: Op = Op(
    "gru",
    _gru,
    lambda gates, weight, hidden, bias: _infer(5, gates, hidden),
    rules=(lambda g: g.of_input, _weight_rule, lambda g: g.first[0], lambda g: ops.sum(g.of_state, axis=(0, 1))),
    common=_gru_cotangents,
    copies=True,
    cost=_cost,
    family="recurrent",
    listed=False,
)


def _gru_sequence(gates: Array, state: State, weight: Array, bias: Array) -> tuple[Array, State]:
    zeros = ops.zeros(shape_of(weight)[1:], dtype=dtype_of(weight)) if bias is None else bias
    planes = gru(gates, weight, *state, zeros)
    return planes[0], (planes[0, -1],)


SEQUENCES: dict[str, RunSequence] = {"lstm": _lstm_sequence, "gru": _gru_sequence}
