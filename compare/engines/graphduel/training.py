"""A training step of PyTorch's names as a function of the state that it changes: parameters, buffers, sums.

`step(state, *call)` gives what the step returns, and the state after it. On arrays it runs as written, on the objects
of its file. On the symbols of a trace the same code runs, and the backward pass and the updates of optimizers are part
of the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import graphs as g
from compare.engines.graphduel.functions import PARTS
from compare.engines.graphduel.programs import Standing, StandingProgram, StandingStep, plain
from compare.engines.graphduel.tensors import array_of, as_array
from compare.engines.reach import is_users_class
from compare.errors import UnsupportedError
from dynamic import Tensor, enable_grad
from dynamic.checkpoint import EnoughError, Generators, checkpoints_by, end_second_run
from dynamic.optim.optimizer import Optimizer
from dynamic.optim.optimizers import RuledOptimizer
from graphs import dispatch, tree
from graphs.blocks import Block, undo_after
from graphs.errors import ControlFlowError, count_as_ours, located
from graphs.ir import Node
from graphs.reverse import pullback
from static.trace.differentiate import pulled
from static.trace.symbol import Symbol, callee
from static.trace.tracing import current

count_as_ours(__file__)

State = Mapping[str, Any]


class TrainingProgram(StandingProgram):
    """A step that trains, as a function of its state: tensors, and the sums of optimizers that have made no step."""

    @functools.cached_property
    def optimizers(self) -> list[Optimizer]:
        """Those that it reaches. Raises UnsupportedError for one that has made steps."""
        optimizers = list({id(value): value for value in self.values if isinstance(value, Optimizer)}.values())
        if any(any(optimizer.state.values()) for optimizer in optimizers):
            raise UnsupportedError("an optimizer has made steps before it is measured; leave them out of the file")
        return optimizers

    @property
    def state(self) -> State:
        """What it is at the start."""
        return {
            "tensors": {name: tensor.numpy(force=True).copy() for name, tensor in self.tensors.items()},
            "sums": list(map(_first_sums, self.optimizers)),
        }

    @property
    def after(self) -> State:
        """What it is now, on the objects of the file."""
        tensors = {name: array_of(tensor).copy() for name, tensor in self.now.items()}
        return {"tensors": tensors, "sums": list(map(_sums, self.optimizers))}

    def parts(self, result: tuple[Any, Any]) -> tuple[Any, ...]:
        """What a call gives: a value, its gradients, and the state by what messages call it."""
        (value, state), gradients = result
        named = {self.labels[name]: array for name, array in state["tensors"].items()}
        names = {id(tensor): label for tensor, label in zip(self.tensors.values(), self.labels.values(), strict=True)}
        for place, (optimizer, groups) in enumerate(zip(self.optimizers, state["sums"], strict=True)):
            of = f" in optimizer {place + 1}" if place else ""
            slots: Mapping[str, str] = getattr(optimizer, "slots", {})
            for number, (group, sums) in enumerate(zip(optimizer.param_groups, groups, strict=False)):
                trained = [
                    names.get(id(param), f"parameter {k} of group {number}, which the step does not read")
                    for k, param in enumerate(_trained(group))
                ]
                for slot, kept in sums.items():
                    each = (
                        zip(trained, kept, strict=False) if isinstance(kept, list) else [(f"group {len(named)}", kept)]
                    )
                    named |= {f"`{slots.get(slot, slot)}` of {label}{of}": array for label, array in each}
        return value, gradients, named

    def load(self, state: State) -> None:
        """Let the objects of the file hold a state of the start."""
        for name, tensor in self.tensors.items():
            value = state["tensors"][name]
            np.copyto(array_of(tensor), array_of(value) if isinstance(value, Tensor) else value)
            tensor.grad = None
        for optimizer in self.optimizers:
            optimizer.state.clear()

    def written(self, argnum: int | None) -> StandingStep:
        """See the base."""
        return _WrittenTraining(self)

    def calls_of(self) -> list[tuple[Any, ...]]:
        """See the base."""
        state = self.state
        return [(state, *call) for call in self.calls.plain]

    def made(self) -> Callable[..., Any]:
        """`step(state, *args) -> (value, state)`."""

        def step(state: State, *args: Any) -> tuple[Any, State]:
            builder = current()
            if builder is not None:
                return _Traced(self, builder, state, args).run()
            self.load(state)
            with enable_grad(), self.drawing():
                value = self.function(*self.taking(args))
            return _value(value), self.after

        vars(step)[PARTS] = self.parts
        return self.tagged(step)


class _WrittenTraining(StandingStep):
    """A training step as its author writes it."""

    program: TrainingProgram

    def load(self, *state: Any) -> None:
        """See the base."""
        self.program.load(*state)

    def result(self, args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """See the base."""
        return lambda value: ((tree.tree_map(as_array, _value(value)), self.program.after), ())


def _value(returned: Any) -> Any:
    return () if returned is None else plain(returned)


def _trained(group: Mapping[str, Any]) -> list[Any]:
    return [param for param in group["params"] if param.requires_grad]


def _first_sums(optimizer: Optimizer) -> list[Any]:
    if not isinstance(optimizer, RuledOptimizer):
        return []  # its step is no function of sums
    groups = [(group, _trained(group)) for group in optimizer.param_groups]
    return [optimizer.rule(group).init([p.numpy(force=True) for p in params]) for group, params in groups]


def _sums(optimizer: Optimizer) -> list[Any]:
    """What it keeps now; of a parameter that had no gradient yet what it begins with, as a graph has it."""
    if not isinstance(optimizer, RuledOptimizer):
        return []
    groups = zip(_first_sums(optimizer), optimizer.param_groups, strict=True)
    return [_of_group(optimizer, first, _trained(group)) for first, group in groups]


def _of_group(optimizer: RuledOptimizer, first: Mapping[str, Any], params: Sequence[Any]) -> Mapping[str, Any]:
    states = [optimizer.state.get(param, {}) for param in params]
    return {
        slot: [array_of(s[name]) if name in s else zero for s, zero in zip(states, first[slot], strict=True)]
        for slot, name in optimizer.slots.items()
        if first.get(slot)
    }


class _Checkpoint(NamedTuple):
    """A call that backward makes again: what is called, what it draws from, and after how many ops it has enough."""

    f: Callable[..., Any]
    args: Sequence[Any]
    kwargs: dict[str, Any]
    generators: Generators
    ops: int


class _Again(Block):
    """Inside, a checkpoint runs again: it draws as before, and ends after its ops."""

    def __init__(self, traced: _Traced, call: _Checkpoint) -> None:
        self.traced, self.call = traced, call

    def __enter__(self) -> None:
        hold, bind, most = self.hold(), dispatch.interpreters[Symbol], self.traced.ops + self.call.ops
        self.call.generators.rewind(hold)

        def ending(op: Any, args: Sequence[Any], attrs: dispatch.Attrs) -> Any:
            result = bind(op, args, attrs)
            if self.traced.ops >= most:
                end_second_run()
            return result

        dispatch.interpret(Symbol, ending)
        undo_after(hold, functools.partial(dispatch.interpret, Symbol, bind))


class _Traced(Standing):
    """A step on symbols: what holds parameters holds these meanwhile."""

    program: TrainingProgram

    def __init__(self, program: TrainingProgram, builder: Any, state: State, args: Sequence[Any]) -> None:
        super().__init__(program, builder, state["tensors"], args)
        self.start = len(builder.nodes)
        self.names = {id(tensor): name for name, tensor in program.tensors.items()}
        self.wanted = [name for name, tensor in program.tensors.items() if tensor.requires_grad]
        self.gradients = dict[str, Any]()
        self.sums = [list(groups) for groups in state["sums"]]
        self.again: list[_Checkpoint] = []

    def run(self) -> tuple[Any, State]:
        """What the step returns, and the state after it."""
        with self.running() as call, self._optimizers(), checkpoints_by(self._checkpointed):
            value = _value(callee(self.program.function)(*call))
            now = self.program.now
        after = {name: now.get(name, symbol) for name, symbol in self.symbols.items()}
        sums = [
            [_slots(sums, opt) for sums in groups if isinstance(opt, RuledOptimizer)]
            for groups, opt in zip(self.sums, self.program.optimizers, strict=True)
        ]
        return value, {"tensors": after, "sums": sums}

    # Checkpoints ----------------------------------------------------------------------------------------------------

    @property
    def ops(self) -> int:
        """The ops so far."""
        return sum(_is_op(node) for node in self.builder.nodes)

    def _checkpointed(self, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run it, and note what backward runs again of it: no value, which a graph has, but what it changes."""
        generators, begin = Generators(tree.leaves((args, kwargs))), len(self.builder.nodes)
        result = f(*args, **kwargs)
        if current() is self.builder and (ops := self._until_saved(begin, tree.leaves(result))):
            self.again.append(_Checkpoint(f, args, kwargs, generators, ops))
        return result

    def _until_saved(self, begin: int, outputs: Sequence[Any]) -> int:
        """How many ops from a node on there are up to the last whose gradient reads a value; 0 where none does."""
        alive = {self.symbols[name].node for name in self.wanted}
        for node in self.builder.nodes[self.start :]:
            if _differentiable(node, alive):
                alive.add(node)
        reached, ahead = set[Node](), [leaf.node for leaf in outputs if isinstance(leaf, Symbol)]
        while ahead:
            node = ahead.pop()
            if node in alive and node not in reached:
                reached.add(node)
                ahead += [node.inputs[i] for i in _differentiable(node, alive)]
        ops = list(filter(_is_op, self.builder.nodes[begin:]))
        return max((k for k, node in enumerate(ops, 1) if node in reached and _saves(node, alive)), default=0)

    def _run_again(self) -> None:
        """What PyTorch runs again as it comes back to its checkpoints, the last one first."""
        while self.again:
            call = self.again.pop()
            try:
                with _Again(self, call):
                    call.f(*call.args, **call.kwargs)
            except EnoughError:
                pass

    # What a parameter can do in PyTorch, and a symbol cannot ------------------------------------------------------

    @property
    def methods(self) -> Mapping[str, Any]:
        """What a symbol can do here: have a gradient, be differentiated, and change."""
        return {
            **super().methods,
            "backward": self._backward_of(),
            "grad": property(self._gradient, self._set_gradient),
            "requires_grad": property(lambda symbol: self.name(symbol) in self.wanted, lambda _, __: None),
        }

    def _gradient(self, symbol: Symbol) -> Any:
        return self.gradients.get(self.name(symbol) or "")

    def _set_gradient(self, symbol: Symbol, gradient: Any) -> None:
        name = self.name(symbol)
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
        self._run_again()

    # Optimizers -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _optimizers(self) -> Iterator[None]:
        """Inside, their steps are nodes of the graph. Raises ControlFlowError for one of the user's own class."""
        optimizers = self.program.optimizers
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
                    self.gradients.pop(self.names.get(id(param), ""), None)

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
                names = [self.names.get(id(param), "") for param in _trained(group)]
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
            symbol.node = self.variable(value).node
        for slot, value in after.items():
            if isinstance(value, list):
                kept = list(sums[slot])
                for i, changed in zip(having, value, strict=True):
                    kept[i] = changed
                after[slot] = kept
        return after


def _slots(sums: Mapping[str, Any], optimizer: RuledOptimizer) -> Mapping[str, Any]:
    return {slot: sums[slot] for slot in optimizer.slots if slot in sums}


def _is_op(node: Node) -> bool:
    return not node.is_source


def _differentiable(node: Node, alive: Container[Node]) -> list[int]:
    """The inputs that a gradient goes back to."""
    if node.is_source:
        return []
    return [i for i, source in enumerate(node.inputs) if source in alive and node.op.rule(i) is not None]


def _saves(node: Node, alive: Container[Node]) -> bool:
    """Whether its gradient reads values, and not only shapes."""
    wanted = sum(1 << i for i in _differentiable(node, alive))
    sources = pullback(node.op, wanted, len(node.inputs)).sources
    return any(source is not None and not (source >= 0 and _is_number(node.inputs[source])) for source in sources)


def _is_number(node: Node) -> bool:
    """Whether it is a number of Python's, which is no array that a tape saves."""
    return node.is_constant and not node.spec.shape
