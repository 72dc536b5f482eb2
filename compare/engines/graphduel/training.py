"""A training step of PyTorch's names as a function of the state that it changes: parameters, buffers, sums.

`step(state, *call)` gives what the step returns, and the state after it. On arrays it runs as written, on the objects
of its file. On the symbols of a trace the same code runs, and the backward pass and the updates of optimizers are part
of the graph.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import dynamic
import graphs as g
from compare.engines.graphduel.functions import PARTS, START
from compare.engines.graphduel.replayed import Replay, replaying
from compare.engines.graphduel.tensors import as_tensors, pulled
from compare.engines.held import Kinds
from compare.engines.reached import ReachedCode, is_users_class
from compare.engines.state import Piece, StartState
from compare.errors import UnsupportedError
from dynamic.nn.functional.normalization import moved
from dynamic.optim.lr_scheduler import LRScheduler
from dynamic.optim.optimizer import Optimizer
from dynamic.optim.optimizers import RuledOptimizer
from graphs.errors import ControlFlowError, count_as_ours, located
from graphs.ops.movement import identity
from static.convert.stage.places import putting_back
from static.trace.converting import callee
from static.trace.symbol import Symbol
from static.trace.tracing import current, node_of

count_as_ours(__file__)

State = Mapping[str, Any]
Attribute = tuple[Any, str]
"""A dict of attributes or globals, and a name in it."""


class AsBrought:
    """The arguments of a call as its user brought them: arrays of NumPy where these are none of tensors.

    On the symbols of a trace they stay symbols.
    """

    def __init__(self, kinds: Kinds, call: tuple[Any, ...]) -> None:
        self.kinds = kinds
        self.at = {i for i, leaf in enumerate(kinds.leaves(list(call))) if isinstance(leaf, np.ndarray)}

    def __call__(self, call: Sequence[Any]) -> Sequence[Any]:
        """The arguments."""
        if not self.at:
            return call
        numbers = iter(range(sys.maxsize))
        made: list[Any] = self.kinds.mapped(lambda leaf: _numpy(leaf) if next(numbers) in self.at else leaf, list(call))
        return made


def _numpy(leaf: Any) -> Any:
    return leaf.numpy(force=True) if isinstance(leaf, dynamic.Tensor) else leaf


class TrainingStep:
    """A step, what it reaches, and its state as it is now. `holders` are the arguments by position that hold state.

    `replay` has the random numbers that it draws, if any.
    """

    def __init__(
        self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], kinds: Kinds, start: StartState,
        as_brought: AsBrought, replay: Replay | None = None,
    ) -> None:  # fmt: skip
        self.function, self.start, self.as_brought, self.replay = function, start, as_brought, replay
        code = ReachedCode(function)
        values = [*kinds.leaves(list(calls)), *code.values]
        self.tensors = kinds.state(function, calls)
        self.labels = kinds.labels(function, calls)
        start.others = list(self.tensors.values())
        self.optimizers = _optimizers(values)
        stateful = (kinds.module, Optimizer, LRScheduler)
        self.holders = {i: value for i, value in enumerate(calls[0]) if isinstance(value, stateful)}
        names = {id(tensor): name for name, tensor in self.tensors.items()}
        outer: list[Any] = [value for value in values if isinstance(value, kinds.module)]
        modules = [inner for module in outer for inner in module.modules()]
        spaces = [*{id(module): vars(module) for module in modules}.values()]
        places = [(space, name) for space in spaces for name in space]
        places += [(place.space, place.name) for place in code.places]
        self.places = [(space, key, names[id(v)]) for space, key in places if id(v := space.get(key)) in names]
        self.place_of = {name: (space, key) for space, key, name in reversed(self.places)}

    @property
    def now(self) -> Mapping[str, Any]:
        """What stands now where each tensor was: a step may put another one in its place."""
        return {
            name: tensor if (place := self.place_of.get(name)) is None else place[0][place[1]]
            for name, tensor in self.tensors.items()
        }

    @property
    def state(self) -> State:
        """The parameters and buffers now, and the sums of optimizers that have made no step."""
        return {
            "tensors": {name: tensor.numpy(force=True).copy() for name, tensor in self.tensors.items()},
            "sums": [self._sums(optimizer) for optimizer in self.optimizers],
        }

    def _sums(self, optimizer: Optimizer) -> list[Any]:
        if not isinstance(optimizer, RuledOptimizer):
            return []  # its step is no function of sums
        groups = [(group, _trained(group)) for group in optimizer.param_groups]
        return [optimizer.rule(group).init([p.numpy(force=True) for p in params]) for group, params in groups]

    def parts(self, result: tuple[Any, Any]) -> tuple[Any, ...]:
        """What a call gives: a value, its gradients, and the state by what messages call it."""
        (value, state), gradients = result
        named = {self.labels[name]: array for name, array in state["tensors"].items()}
        names = {id(tensor): label for tensor, label in zip(self.tensors.values(), self.labels.values(), strict=True)}
        for place, (optimizer, groups) in enumerate(zip(self.optimizers, state["sums"], strict=True)):
            of = f" in optimizer {place + 1}" if place else ""
            slots: Mapping[str, str] = getattr(optimizer, "slots", {})
            for group, sums in zip(optimizer.param_groups, groups, strict=False):
                trained = [names[id(param)] for param in _trained(group)]
                for slot, kept in sums.items():
                    each = (
                        zip(trained, kept, strict=False) if isinstance(kept, list) else [(f"group {len(named)}", kept)]
                    )
                    named |= {f"`{slots.get(slot, slot)}` of {label}{of}": array for label, array in each}
        return value, gradients, named

    def calls(self, calls: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """The calls, with the state for what holds it."""
        state = self.state
        return [(state, *(value for i, value in enumerate(call) if i not in self.holders)) for call in calls]

    def made(self) -> Callable[..., Any]:
        """The step as a plain function."""

        def step(state: State, *args: Any) -> tuple[Any, State]:
            rest = iter(args)
            call = [self.holders[i] if i in self.holders else next(rest) for i in range(len(args) + len(self.holders))]
            traced = current() is not None
            with replaying(self.replay):
                return (_Traced(self, state) if traced else _Recorded(self, state)).run(self.as_brought(call))

        vars(step).update({START: self.start, PARTS: self.parts})
        step.__name__ = getattr(self.function, "__name__", "step")
        return step


def _optimizers(values: Sequence[Any]) -> list[Optimizer]:
    """The optimizers among values. Raises UnsupportedError for one that has made steps."""
    optimizers = list({id(value): value for value in values if isinstance(value, Optimizer)}.values())
    if any(any(optimizer.state.values()) for optimizer in optimizers):
        raise UnsupportedError("an optimizer has made steps before it is measured; leave them out of the file")
    return optimizers


def _trained(group: Mapping[str, Any]) -> list[Any]:
    return [param for param in group["params"] if param.requires_grad]


class _Recorded:
    """A step on the objects of its file."""

    def __init__(self, training: TrainingStep, state: State) -> None:
        self.training = training
        for name, tensor in training.tensors.items():
            value = state["tensors"][name]
            np.copyto(_array(tensor), _array(value) if isinstance(value, dynamic.Tensor) else value)
            tensor.grad = None
        for optimizer in training.optimizers:
            optimizer.state.clear()

    def run(self, call: Sequence[Any]) -> tuple[Any, State]:
        with dynamic.enable_grad():
            value = g.tree.tree_map(_detached, self.training.function(*call))
        after = {name: _array(tensor).copy() for name, tensor in self.training.now.items()}
        return () if value is None else value, {
            "tensors": after,
            "sums": list(map(self._sums, self.training.optimizers)),
        }

    def _sums(self, optimizer: Optimizer) -> list[Any]:
        if not isinstance(optimizer, RuledOptimizer):
            return []
        return [self._of_group(optimizer, _trained(group)) for group in optimizer.param_groups]

    @staticmethod
    def _of_group(optimizer: RuledOptimizer, params: Sequence[Any]) -> Mapping[str, Any]:
        states = [optimizer.state[param] for param in params]
        sums = {slot: [_array(s[name]) for s in states if name in s] for slot, name in optimizer.slots.items()}
        return {slot: arrays for slot, arrays in sums.items() if arrays}


def _array(tensor: Any) -> np.ndarray:
    """The memory of a tensor."""
    array: np.ndarray = tensor.detach().numpy()
    return array


def kept_tensor(tensor: Any) -> Piece:
    """What brings back a tensor with its gradient."""
    before, gradient = tensor.numpy(force=True).copy(), tensor.grad

    def same() -> bool:
        return tensor.grad is gradient and np.array_equal(tensor.numpy(force=True), before)

    def back() -> None:
        np.copyto(_array(tensor), before)
        tensor.grad = gradient

    return Piece(same, back, [gradient])


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, dynamic.Tensor) else leaf


class _Traced:
    """A step on symbols: what holds parameters holds these meanwhile."""

    def __init__(self, training: TrainingStep, state: State) -> None:
        builder = current()
        assert builder is not None  # noqa: S101  (asked before)
        self.training, self.builder = training, builder
        self.symbols = {name: self._variable(value) for name, value in state["tensors"].items()}
        self.start = len(builder.nodes)
        self.names = {id(tensor): name for name, tensor in training.tensors.items()}
        self.wanted = [name for name, tensor in training.tensors.items() if tensor.requires_grad]
        self.gradients = dict[str, Any]()
        self.sums = [list(groups) for groups in state["sums"]]

    def _variable(self, value: Any) -> Symbol:
        return Symbol(self.builder, self.builder.append(identity, [node_of(self.builder, value, ())], {}))

    def run(self, call: Sequence[Any]) -> tuple[Any, State]:
        """What the step returns, and the state after it."""
        before = [(space, key, space[key]) for space, key, _ in self.training.places]
        try:
            with moved() as moves, as_tensors(self._methods, self._holds), self._optimizers(), putting_back():
                for space, key, name in self.training.places:
                    space[key] = self.symbols[name]
                value = callee(self.training.function)(*call)
                now = self.training.now
        finally:
            for space, key, tensor in before:
                space[key] = tensor
        running = {id(symbol): name for name, symbol in self.symbols.items()}
        after = {name: now.get(name, symbol) for name, symbol in self.symbols.items()}
        after |= {running[key]: value for key, (_, value) in moves.items() if key in running}
        sums = [
            [_slots(sums, opt) for sums in groups if isinstance(opt, RuledOptimizer)]
            for groups, opt in zip(self.sums, self.training.optimizers, strict=True)
        ]
        return () if value is None else value, {"tensors": after, "sums": sums}

    # What a parameter can do in PyTorch, and a symbol cannot ------------------------------------------------------

    @property
    def _methods(self) -> Mapping[str, Any]:
        """What a symbol can do here: have a gradient, be differentiated, and change."""
        return {
            "backward": self._backward_of(),
            "grad": property(self._gradient, self._set_gradient),
            "data": property(lambda symbol: symbol, _set_data),
            "requires_grad": property(lambda symbol: self._name(symbol) in self.wanted, lambda _, __: None),
            "_assign": self._assign_of(),
        }

    def _assign_of(self) -> Callable[..., Symbol]:
        sound = vars(Symbol)["_assign"]

        def assign(symbol: Symbol, result: Any) -> Any:
            return sound(symbol, result) if self._name(symbol) is None else _rebound(symbol, result)

        return assign

    def _holds(self, symbol: Symbol) -> bool:
        return self._name(symbol) is not None

    def _name(self, symbol: Symbol) -> str | None:
        return next((name for name, held in self.symbols.items() if held is symbol), None)

    def _gradient(self, symbol: Symbol) -> Any:
        return self.gradients.get(self._name(symbol) or "")

    def _set_gradient(self, symbol: Symbol, gradient: Any) -> None:
        name = self._name(symbol)
        if name is None:
            return
        if gradient is None:
            self.gradients.pop(name, None)
        else:
            self.gradients[name] = gradient

    def _backward_of(self) -> Callable[..., None]:
        def backward(loss: Symbol, gradient: Any = None, **_: Any) -> None:
            self._pull(loss, gradient)

        return backward

    def _pull(self, loss: Symbol, gradient: Any) -> None:
        """Add what reaches each parameter from the loss to its gradient."""
        variables = [self.symbols[name] for name in self.wanted]
        for name, cotangent in zip(self.wanted, pulled([loss], [gradient], variables, self.start), strict=True):
            if cotangent is not None:
                before = self.gradients.get(name)
                self.gradients[name] = cotangent if before is None else g.add(before, cotangent)

    # Optimizers -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _optimizers(self) -> Iterator[None]:
        """Inside, their steps are nodes of the graph. Raises ControlFlowError for one of the user's own class."""
        optimizers = self.training.optimizers
        if own := [type(optimizer).__name__ for optimizer in optimizers if is_users_class(type(optimizer))]:
            raise ControlFlowError(
                f"{own[0]} is an optimizer of your own, which changes parameters by itself, and a graph cannot; run it "
                "in mode dynamic"
            )
        for place, optimizer in enumerate(optimizers):
            vars(optimizer).update(step=self._step_of(place, optimizer), zero_grad=self._zero_of(optimizer))
        try:
            yield
        finally:
            for optimizer in optimizers:
                for name in ("step", "zero_grad"):
                    del vars(optimizer)[name]

    def _zero_of(self, optimizer: Optimizer) -> Callable[..., None]:
        def zero_grad(set_to_none: bool = True) -> None:
            for group in optimizer.param_groups:
                for param in group["params"]:
                    self.gradients.pop(self.names[id(param)], None)

        return zero_grad

    def _step_of(self, place: int, optimizer: Optimizer) -> Callable[..., Any]:
        @functools.wraps(optimizer.step)
        def step(closure: Callable[[], Any] | None = None) -> Any:
            name = type(optimizer).__name__
            if not isinstance(optimizer, RuledOptimizer):
                raise ControlFlowError(
                    located(f"{name}.step decides by values what it does, and a graph cannot; run it in mode dynamic")
                )
            if current() is not self.builder:
                raise ControlFlowError(
                    located(
                        f"{name}.step is called where only the run knows whether that is reached; step in any case, "
                        "and choose each parameter by torch.where(condition, new, old), or run it in mode dynamic"
                    )
                )
            value = closure() if closure else None
            for number, group in enumerate(optimizer.param_groups):
                names = [self.names[id(param)] for param in _trained(group)]
                sign = -1 if group.get("maximize") else 1
                self.sums[place][number] = self._updated(optimizer.rule(group), names, self.sums[place][number], sign)
            return value

        return step

    def _updated(self, rule: Any, names: Sequence[str], sums: Any, sign: int) -> Any:
        """The sums after an update of those parameters that have gradients, which get new symbols."""
        having = [i for i, name in enumerate(names) if name in self.gradients]
        chosen = {
            slot: [value[i] for i in having] if isinstance(value, list) else value for slot, value in sums.items()
        }
        params = [self.symbols[names[i]] for i in having]
        gradients = [self.gradients[names[i]] for i in having]
        new, after = rule.update([gr if sign == 1 else -gr for gr in gradients], chosen, params)
        for symbol, value in zip(params, new, strict=True):
            symbol.node = self._variable(value).node
        for slot, value in after.items():
            if isinstance(value, list):
                kept = list(sums[slot])
                for i, changed in zip(having, value, strict=True):
                    kept[i] = changed
                after[slot] = kept
        return after


def _slots(sums: Mapping[str, Any], optimizer: RuledOptimizer) -> Mapping[str, Any]:
    return {slot: sums[slot] for slot in optimizer.slots if slot in sums}


def _rebound(symbol: Symbol, value: Any) -> Symbol:
    """The symbol of a parameter, with another value. Raises ControlFlowError in a branch or a loop of the graph."""
    if current() is not symbol.builder:
        raise ControlFlowError(
            located(
                "a parameter changes where only the run knows whether that is reached; change it in any case, by "
                "torch.where(condition, new, parameter)"
            )
        )
    symbol.node = g.broadcast_to(value, symbol.shape).node if value.shape != symbol.shape else value.node
    return symbol


def _set_data(symbol: Symbol, value: Any) -> None:
    _rebound(symbol, value)
