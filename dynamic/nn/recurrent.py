"""Recurrent layers: a step for each position of a sequence, with PyTorch's gates, names and layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamic.nn import functional as F
from dynamic.nn import init
from dynamic.nn.module import Module
from dynamic.nn.parameter import empty, uniform_bound
from dynamic.nn.sequences import SEQUENCES, is_one_op
from dynamic.nn.utils.rnn import PackedSequence
from graphs import ops
from graphs.errors import ArgumentError, OptionError, ShapeError, locate
from graphs.ops.shapes import as_count, dtype_of, shape_of
from graphs.ops.slicing import cut

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell"]

Array = Any
State = tuple[Array, ...]
Step = Callable[[Array, State, Array, Array], State]  # (x's part of the gates, state, weight_hh.T, bias_hh)


def _rnn_step(activation: Callable[[Array], Array]) -> Step:
    def step(gates: Array, state: State, weight: Array, bias: Array) -> State:
        return (activation(gates + state[0] @ weight if bias is None else _with_state(gates, state, weight, bias)),)

    return step


def _with_state(gates: Array, state: State, weight: Array, bias: Array | None) -> Array:
    """Add the part of the state to the gates of the input; `bias` is None if it is in the gates already."""
    product = state[0] @ weight
    return gates + (product if bias is None else product + bias)


def _parts(gates: Array, count: int) -> list[Array]:
    size = shape_of(gates)[-1] // count
    return [cut(gates, 1, i * size, (i + 1) * size) for i in range(count)]


def _lstm_step(gates: Array, state: State, weight: Array, bias: Array) -> State:
    cell = state[1]
    i, f, g, o = _parts(_with_state(gates, state, weight, bias), 4)
    cell = ops.sigmoid(f) * cell + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(cell), cell


def _gru_step(gates: Array, state: State, weight: Array, bias: Array) -> State:
    (hidden,) = state
    product = hidden @ weight
    reset, update, new = _parts(gates, 3)
    reset_h, update_h, new_h = _parts(product if bias is None else product + bias, 3)
    z = ops.sigmoid(update + update_h)
    n = ops.tanh(new + ops.sigmoid(reset + reset_h) * new_h)
    return (n + z * (hidden - n),)


_STEPS: dict[str, tuple[int, Step]] = {  # how many gates there are, and the step
    "tanh": (1, _rnn_step(ops.tanh)),
    "relu": (1, _rnn_step(ops.relu)),
    "lstm": (4, _lstm_step),
    "gru": (3, _gru_step),
}


def _shares(kind: str, b_ih: Array | None, b_hh: Array | None) -> tuple[Array | None, Array | None]:
    """The biases of input and state; summed once, before the steps, if the gates are the sum of both parts."""
    if kind == "gru" or b_ih is None:
        return b_ih, b_hh
    return ops.add(b_ih, b_hh), None


def _zeros(like: Array, *shape: Any) -> Array:
    return ops.zeros(shape, dtype=dtype_of(like))


# Layers -----------------------------------------------------------------------------------------------------------


class RNNBase(Module):
    """The base of recurrent layers, one for each position after another."""

    kind = "tanh"
    states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        proj_size: int = 0,
    ) -> None:
        super().__init__()
        F.common.refuse(type(self).__name__, "put a Linear after it", proj_size=(proj_size, 0))
        for name, value in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(value, bool):
                raise ArgumentError(f"{name} is a bool, not {value!r}; write True or False")
        if not 0 <= dropout <= 1:
            raise OptionError(f"dropout is a probability, not {dropout}; give a number from 0 to 1")
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if as_count(size, name) < 1:
                raise OptionError(f"{name} is 1 or more, not {size}; check how it was counted")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        gates = _STEPS[self.kind][0] * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * (1 + bidirectional)
            for suffix in self._suffixes(layer):
                setattr(self, f"weight_ih_{suffix}", empty((gates, width), device, dtype))
                setattr(self, f"weight_hh_{suffix}", empty((gates, hidden_size), device, dtype))
                if bias:
                    setattr(self, f"bias_ih_{suffix}", empty((gates,), device, dtype))
                    setattr(self, f"bias_hh_{suffix}", empty((gates,), device, dtype))
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"][: 1 + self.bidirectional]

    def reset_parameters(self) -> None:
        """Draw new initial values: uniform within 1 / sqrt(hidden)."""
        bound = uniform_bound(self.hidden_size)
        for param in self.parameters():
            init.uniform_(param, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need no compact memory here."""

    def forward(self, input: Array, hx: Any = None) -> tuple[Array, Any]:
        """f[T, N, in], or f[N, T, in] with batch_first, or f[T, in] -> the outputs of all steps, and the last state.

        Of a packed sequence the outputs are one, too. Raises ShapeError for another number of axes or another width.
        """
        if isinstance(input, PackedSequence):
            return self._run_packed(input, hx)
        ndim = len(shape_of(input))
        if ndim not in (2, 3) or shape_of(input)[-1] != self.input_size:
            raise ShapeError(
                locate(f"{type(self).__name__}: f[T, N, {self.input_size}] is needed, not shape {shape_of(input)}")
            )
        single, swapped = ndim == 2, self.batch_first and ndim == 3
        xs = ops.expand_dims(input, 1) if single else ops.permute_dims(input, (1, 0, 2)) if swapped else input
        states = self._start(xs, hx, single)
        outputs, last = self._layers(xs, states)
        if single:
            outputs, last = ops.squeeze(outputs, 1), [ops.squeeze(state_part, 1) for state_part in last]
        outputs = ops.permute_dims(outputs, (1, 0, 2)) if swapped else outputs
        return outputs, tuple(last) if self.states > 1 else last[0]

    def _run_packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        """The outputs of each sequence up to its end, and its last state."""
        xs, inside = packed.padded()
        if hx is not None and packed.sorted_indices is not None:
            order = packed.sorted_indices
            hx = tuple(part[:, order] for part in hx) if self.states > 1 else hx[:, order]
        outputs, last = self._layers(xs, self._start(xs, hx, single=False), ops.expand_dims(inside, -1))
        if packed.unsorted_indices is not None:
            last = [part[:, packed.unsorted_indices] for part in last]
        return packed._replace(data=outputs[inside]), tuple(last) if self.states > 1 else last[0]

    def _start(self, xs: Array, hx: Any, single: bool) -> list[Array]:
        """The first states, f[layers, N, hidden] each. Raises ShapeError for a state of another shape."""
        shape = (self.num_layers * (1 + self.bidirectional), shape_of(xs)[1], self.hidden_size)
        if hx is None:
            return [_zeros(xs, *shape)] * self.states
        states = list(hx) if self.states > 1 else [hx]
        states = [ops.expand_dims(part, 1) for part in states] if single else states
        if any(tuple(shape_of(part)) != tuple(shape) for part in states):
            raise ShapeError(locate(f"{type(self).__name__}: a state of shape {shape} is needed"))
        return states

    def _layers(self, xs: Array, states: list[Array], inside: Array = None) -> tuple[Array, list[Array]]:
        last: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in self._suffixes(layer):
                output, state = self._run(xs, tuple(part[len(last)] for part in states), suffix, inside)
                outputs.append(output)
                last.append(state)
            xs = outputs[0] if len(outputs) == 1 else ops.concat(outputs, axis=-1)
            if self.dropout and layer < self.num_layers - 1:
                xs = F.dropout(xs, self.dropout, self.training)
        return xs, [ops.stack([state[i] for state in last]) for i in range(self.states)]

    def _run(self, xs: Array, state: State, suffix: str, inside: Array) -> tuple[Array, State]:
        """Run one layer in one direction: f[T, N, in] -> f[T, N, hidden], and the last state.

        Outside of bool[T, N, 1] `inside`, where it is given, the state stays as it is.
        """
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        w_ih, w_hh, b_ih, b_hh = (getattr(self, f"{name}_{suffix}", None) for name in names)
        step = _STEPS[self.kind][1]
        b_ih, b_hh = _shares(self.kind, b_ih, b_hh)
        gates, w_hh = F.linear(xs, w_ih, b_ih), ops.permute_dims(w_hh)  # at once for all steps
        backwards = suffix.endswith("reverse")
        if inside is None and self.kind in SEQUENCES and is_one_op(gates, *state, w_hh, b_hh):
            outputs, state = SEQUENCES[self.kind](ops.flip(gates, axis=0) if backwards else gates, state, w_hh, b_hh)
            return ops.flip(outputs, axis=0) if backwards else outputs, state
        places = list(range(shape_of(xs)[0]))
        outputs = []
        for t in reversed(places) if backwards else places:
            after = step(gates[t], state, w_hh, b_hh)
            if inside is not None:
                after = tuple(ops.where(inside[t], new, old) for new, old in zip(after, state, strict=True))
            state = after
            outputs.append(state[0])
        return ops.stack(outputs[::-1] if backwards else outputs), state

    def extra_repr(self) -> str:
        """The options."""
        extra = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0)):
            extra += "" if getattr(self, name) == usual else f", {name}={getattr(self, name)}"
        return extra + (", bidirectional=True" if self.bidirectional else "")


class RNN(RNNBase):
    """h = tanh(W x + U h + b) along a sequence, or with relu in place of tanh."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.__dict__["kind"] = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), its gates in the order i, f, g, o."""

    kind = "lstm"
    states = 2


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014), with the gates in the order reset, update, new."""

    kind = "gru"


# Cells ------------------------------------------------------------------------------------------------------------


class _Cell(Module):
    kind = "tanh"
    states = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = _STEPS[self.kind][0] * hidden_size
        self.weight_ih = empty((gates, input_size), device, dtype)
        self.weight_hh = empty((gates, hidden_size), device, dtype)
        self.register_parameter("bias_ih", empty((gates,), device, dtype) if bias else None)
        self.register_parameter("bias_hh", empty((gates,), device, dtype) if bias else None)
        bound = uniform_bound(hidden_size)
        for param in self.parameters():
            init.uniform_(param, -bound, bound)

    def forward(self, input: Array, hx: Any = None) -> Any:
        """f[N, in] or f[in], and the state -> the next state."""
        single = len(shape_of(input)) == 1
        x = ops.expand_dims(input, 0) if single else input
        if hx is None:
            state: State = (_zeros(x, shape_of(x)[0], self.hidden_size),) * self.states
        else:
            state = tuple(hx) if self.states > 1 else (hx,)
            state = tuple(ops.expand_dims(state_part, 0) for state_part in state) if single else state
            if any(tuple(shape_of(state_part)) != (shape_of(x)[0], self.hidden_size) for state_part in state):
                wanted = f"[{'' if single else 'N, '}{self.hidden_size}]"
                raise ShapeError(locate(f"{type(self).__name__}: a state f{wanted} is needed; reshape the one given"))
        b_ih, b_hh = _shares(self.kind, self.bias_ih, self.bias_hh)
        gates = F.linear(x, self.weight_ih, b_ih)
        state = _STEPS[self.kind][1](gates, state, ops.permute_dims(self.weight_hh), b_hh)
        state = tuple(ops.squeeze(state_part, 0) for state_part in state) if single else state
        return state if self.states > 1 else state[0]

    def extra_repr(self) -> str:
        """The sizes, and options that differ from their defaults."""
        extra = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
        return extra + (f", nonlinearity={self.kind}" if self.kind == "relu" else "")


class RNNCell(_Cell):
    """One step of an RNN."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.__dict__["kind"] = nonlinearity
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity


class LSTMCell(_Cell):
    """One step of an LSTM: the state is a pair (hidden, cell)."""

    kind = "lstm"
    states = 2


class GRUCell(_Cell):
    """One step of a GRU."""

    kind = "gru"
