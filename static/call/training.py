"""The trace of a training step: its gradients, its updates, and the sums that the rules of optimizers keep."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphs import dispatch, ops, tree
from graphs.blocks import Block, undo_after
from graphs.builder import Builder
from graphs.errors import ControlFlowError, GraphError, locate
from graphs.ir import Node
from graphs.op import is_ours
from graphs.reverse import pullback
from static.convert.stage.places import putting_back
from static.trace.differentiate import pull_cotangents
from static.trace.step import Place, StepTrace, at, place_values, stepping
from static.trace.symbol import Symbol
from static.trace.tracing import current

State = Mapping[str, Any]
Optimizers = Sequence[Any]


@contextmanager
def traced_tensors(trace: StepTrace, places: Sequence[Place]) -> Iterator[tuple[Any, ...]]:
    """Put the symbols of a trace in the places of its tensors inside the block; give the arguments of the call."""
    with stepping(trace), putting_back(), place_values(places, trace.symbols):
        yield trace.args


class TrainingTrace(StepTrace):
    """The trace of a step that differentiates and updates parameters itself.

    `tensors` are the tensors by name. `state` has their values, and the sums that the rule of each optimizer keeps for
    each group. `rates` are learning rates that a run gets as numbers, by optimizer and group.
    """

    def __init__(
        self, builder: Builder, tensors: Mapping[str, Any], optimizers: Optimizers, state: State, args: Sequence[Any],
        rates: Sequence[Sequence[Any]] = (),
    ) -> None:  # fmt: skip
        super().__init__(builder, state["tensors"], args)
        self._start = len(builder.nodes)
        self._tensors, self._optimizers, self._rates = tensors, optimizers, rates
        self._by_id = {id(tensor): name for name, tensor in tensors.items()}
        self._before = {name: symbol.node for name, symbol in self.symbols.items()}
        self._wanted = [name for name, tensor in tensors.items() if tensor.requires_grad]
        self._gradients = dict[str, Any]()
        self.sums = [list(groups) for groups in state["sums"]]
        self.updates = dict.fromkeys(tensors, 0)
        self._again: list[_Checkpoint] = []
        self._absent: list[Any] = []

    @contextmanager
    def running(self, places: Sequence[Place]) -> Iterator[tuple[Any, ...]]:
        """Enter `traced_tensors`, and check and restore what a training step needs: its optimizers and gradients.

        Raises ControlFlowError for an optimizer of the user's own class.
        """
        if own := [type(optimizer).__name__ for optimizer in self._optimizers if not is_ours(type(optimizer))]:
            raise ControlFlowError(
                f"{own[0]} is an optimizer of your own, which changes parameters by itself, and a graph cannot; run it "
                "in mode dynamic"
            )
        before = [(tensor, tensor.grad) for tensor in self._tensors.values() if tensor.requires_grad]
        try:
            self._absent = [_absent_gradient(tensor) for tensor, _ in before]
            with traced_tensors(self, places) as args:
                yield args
        finally:
            for tensor, gradient in before:
                tensor.grad = gradient

    def after(self, places: Mapping[str, tuple[Any, Any]]) -> State:
        """Return the state at the end: the value in the place of each tensor, and the sums.

        Call it inside `running`.
        """
        now = {name: at(*place) for name, place in places.items()}
        self.check_views()
        return {"tensors": {name: now.get(name, symbol) for name, symbol in self.symbols.items()}, "sums": self.sums}

    def symbol_of(self, tensor: Any) -> Symbol | None:
        """Return the symbol of a tensor of the step, None for another tensor.

        Raises ControlFlowError for the gradient of a tensor, which only its symbol has, and for a view of a tensor that
        the step has changed: it is read where a call begins.
        """
        if any(tensor is absent for absent in self._absent):
            raise ControlFlowError(
                locate(
                    "the gradient of a parameter is read by another way than the module has it; take it from "
                    "module.parameters()"
                )
            )
        name = self._by_id.get(id(tensor))
        if name is None and hasattr(tensor, "detach"):
            self._check_memory(tensor.detach().numpy())
        return None if name is None else self.symbols[name]

    def _check_memory(self, memory: Any) -> None:
        """Raise ControlFlowError where memory is that of a tensor that the step has changed."""
        for name, start in self._before.items():
            changed = self.symbols[name].node is not start
            if changed and np.may_share_memory(memory, self._tensors[name].detach().numpy()):
                raise ControlFlowError(
                    locate(
                        f"a tensor that was made outside the step shares the memory of {name}, which the step has "
                        "changed in place; take that view inside the step"
                    )
                )

    # Gradients --------------------------------------------------------------------------------------------------------

    def requires_grad(self, symbol: Symbol) -> bool:
        """Whether a symbol stands for a tensor that is trained."""
        return self.name(symbol) in self._wanted

    def gradient(self, symbol: Symbol) -> Any:
        """Return the gradient that backward has left for a symbol's tensor, None where there is none."""
        return self._gradients.get(self.name(symbol) or "")

    def is_gradient(self, symbol: Symbol) -> bool:
        """Whether a symbol is the gradient that a tensor has."""
        return any(symbol is gradient for gradient in self._gradients.values())

    def set_gradient(self, symbol: Symbol, gradient: Any) -> None:
        """Set the gradient of a symbol's tensor, or remove it with None."""
        name = self.name(symbol)
        if name is None:
            return
        if gradient is None:
            self._gradients.pop(name, None)
        else:
            self._gradients[name] = gradient

    def backward(self, symbol: Symbol) -> Callable[..., None]:
        """Return `loss.backward`, which adds the gradient of the loss in each parameter to the parameter's gradient."""

        def backward(gradient: Any = None, **_: Any) -> None:
            variables = [self.symbols[name] for name in self._wanted]
            reaching = pull_cotangents([symbol], [gradient], variables, self._start)
            for name, cotangent in zip(self._wanted, reaching, strict=True):
                if cotangent is not None:
                    before = self._gradients.get(name)
                    self._gradients[name] = cotangent if before is None else ops.add(before, cotangent)
            self._run_again()

        return backward

    # Checkpoints ------------------------------------------------------------------------------------------------------

    @property
    def ops(self) -> int:
        """The number of ops in the graph so far."""
        return sum(not node.is_source for node in self.builder.nodes)

    def checkpoint(self, call: Any) -> Any:
        """Run a checkpointed call, and note how much of it backward runs again.

        No value is computed again, since the graph keeps it; only the side effects of the call repeat.
        """
        begin = len(self.builder.nodes)
        result = call()
        if current() is self.builder and (count := self._until_saved(begin, tree.leaves(result))):
            self._again.append(_Checkpoint(self, call, count))
        return result

    def _until_saved(self, begin: int, outputs: Sequence[Any]) -> int:
        """Return how many ops from node number `begin` on it takes to the last whose gradient reads a value.

        0 for none.
        """
        alive = {self.symbols[name].node for name in self._wanted}
        for node in self.builder.nodes[self._start :]:
            if _differentiable(node, alive):
                alive.add(node)
        reached, ahead = set[Node](), [leaf.node for leaf in outputs if isinstance(leaf, Symbol)]
        while ahead:
            node = ahead.pop()
            if node in alive and node not in reached:
                reached.add(node)
                ahead += [node.inputs[i] for i in _differentiable(node, alive)]
        own = [node for node in self.builder.nodes[begin:] if not node.is_source]
        return max((k for k, node in enumerate(own, 1) if node in reached and _saves(node, alive)), default=0)

    def _run_again(self) -> None:
        """Run the checkpointed calls again that PyTorch's backward runs again, the last one first."""
        while self._again:
            again = self._again.pop()
            again.call.again(again)

    # Optimizers -------------------------------------------------------------------------------------------------------

    def zero_grad(self, optimizer: Any) -> None:
        """Do `optimizer.zero_grad()`: drop the gradients of its parameters."""
        for group in optimizer.param_groups:
            for param in group["params"]:
                self._gradients.pop(self._by_id.get(id(param), ""), None)

    def step(self, optimizer: Any, closure: Callable[[], Any] | None) -> Any:
        """Do `optimizer.step(closure)`; its updates are nodes of the graph.

        Raises ControlFlowError in a branch of the graph, for an optimizer that decides by values, and for an optimizer
        that was not given to the step.
        """
        name = type(optimizer).__name__
        if not is_ruled(optimizer):
            raise ControlFlowError(
                locate(f"{name}.step decides by values what it does, and a graph cannot; run it in mode dynamic")
            )
        if current() is not self.builder:
            raise ControlFlowError(
                locate(
                    f"{name}.step is called where only the run knows whether that is reached; step in any case, "
                    "and choose each parameter by torch.where(condition, new, old), or run it in mode dynamic"
                )
            )
        place = next((i for i, other in enumerate(self._optimizers) if other is optimizer), None)
        if place is None:
            raise ControlFlowError(
                locate(f"{name}.step changes what the step was not told of; name it: static.trace_step(f, optimizer)")
            )
        value = closure() if closure else None
        for number, group in enumerate(optimizer.param_groups):
            params = trainable_params(group)
            names = [self._by_id.get(id(param), "") for param in params]
            if len({*map(id, params)}) < len(params):
                raise ControlFlowError(locate(f"{name}: a parameter is twice in a group; give each once"))
            having = [i for i, name in enumerate(names) if name in self._gradients]
            if not all(any(params[i].grad is absent for absent in self._absent) for i in having):
                rule = "the gradient of a parameter is set or removed by another way than the module has it"
                raise ControlFlowError(locate(f"{rule}; take it from module.parameters(), or run it in mode dynamic"))
            counts = {_steps_of(optimizer, params[i]) + self.updates[names[i]] for i in having}
            _count(optimizer, {count + 1 for count in counts})
            rate = {"lr": self._rates[place][number]} if self._rates else {}
            rule, sums = optimizer.rule({**group, **rate}), self.sums[place][number]
            self.sums[place][number] = self._updates(rule, names, having, sums, maximize=bool(group.get("maximize")))
        return value

    def _updates(self, rule: Any, names: Sequence[str], having: Sequence[int], sums: Any, *, maximize: bool) -> Any:
        """Update the parameters that have gradients, and return the sums after the update."""
        chosen = {
            slot: [value[i] for i in having] if isinstance(value, list) else value for slot, value in sums.items()
        }
        params = [self.symbols[names[i]] for i in having]
        gradients = [self._gradients[names[i]] for i in having]
        new, after = rule.update([-gradient if maximize else gradient for gradient in gradients], chosen, params)
        for symbol, value in zip(params, new, strict=True):
            self._change(symbol, self.variable(value).node)
        for slot, value in after.items():
            if isinstance(value, list):
                kept = list(sums[slot])
                for i, changed in zip(having, value, strict=True):
                    kept[i] = changed
                after[slot] = kept
        for i in having:
            self.updates[names[i]] += 1
        return after


def _absent_gradient(tensor: Any) -> Any:
    """Return a gradient for a tensor whose symbol has the real one; a read of it is refused."""
    tensor.grad = tensor.detach()
    return tensor.grad


class _Checkpoint(Block):
    """A checkpointed call that backward runs again; inside the block it ends after the given number of ops."""

    def __init__(self, trace: TrainingTrace, call: Any, count: int) -> None:
        self._trace, self.call, self._count = trace, call, count

    def __enter__(self) -> None:
        hold, bind, most = self.hold(), dispatch.interpreters[Symbol], self._trace.ops + self._count

        def ending(op: Any, args: Sequence[Any], attrs: dispatch.Attrs) -> Any:
            result = bind(op, args, attrs)
            if self._trace.ops >= most:
                self.call.end()
            return result

        dispatch.interpret(Symbol, ending)
        undo_after(hold, functools.partial(dispatch.interpret, Symbol, bind))


def _differentiable(node: Node, alive: Container[Node]) -> list[int]:
    """Return the indices of the inputs that a gradient goes back to."""
    if node.is_source:
        return []
    return [i for i, source in enumerate(node.inputs) if source in alive and node.op.rule(i) is not None]


def _saves(node: Node, alive: Container[Node]) -> bool:
    """Whether a node's gradient reads values, and not only shapes."""
    wanted = sum(1 << i for i in _differentiable(node, alive))
    sources = pullback(node.op, wanted, len(node.inputs)).sources
    return any(source is not None and not (source >= 0 and _is_number(node.inputs[source])) for source in sources)


def _is_number(node: Node) -> bool:
    """Whether a node is a Python number, which is no array that a tape saves."""
    return node.is_constant and not node.spec.shape


# The sums of optimizers -----------------------------------------------------------------------------------------------


def trainable_params(group: Mapping[str, Any]) -> list[Any]:
    """Return the parameters of a group that have gradients."""
    return [param for param in group["params"] if param.requires_grad]


def is_ruled(optimizer: Any) -> bool:
    """Whether an optimizer's step is a function of gradients and sums, and decides nothing by values."""
    return hasattr(optimizer, "rule")


def sums_of(optimizer: Any) -> list[dict[str, Any]]:
    """Return the sums that an optimizer keeps, by group, as its rule takes them; [] for one without a rule.

    Raises GraphError where parameters of one group have made different numbers of steps.
    """
    groups = optimizer.param_groups if is_ruled(optimizer) else ()
    return [_with_count(optimizer, group, slot_sums(optimizer, group)) for group in groups]


def slot_sums(optimizer: Any, group: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sums of one group; a parameter without a step has the sums from before its first step."""
    params = trainable_params(group)
    sums: dict[str, Any] = optimizer.rule(group).init([param.detach().numpy() for param in params])
    for i, param in enumerate(params):
        state = optimizer.state.get(param, {})
        for slot, name in optimizer.slots_of(param).items():
            if name in state:
                sums[slot] = [*sums[slot][:i], state[name].numpy(), *sums[slot][i + 1 :]]
    return sums


def _with_count(optimizer: Any, group: Mapping[str, Any], sums: dict[str, Any]) -> dict[str, Any]:
    count = _count(optimizer, [_steps_of(optimizer, param) for param in trainable_params(group)])
    return {**sums, "count": np.asarray(count)} if "count" in sums else sums


def _steps_of(optimizer: Any, param: Any) -> int:
    """Return how many steps of a parameter an optimizer has made."""
    state = optimizer.state.get(param, {})
    return int(state.get("step", 1 if state else 0))


def _count(optimizer: Any, counts: Iterable[int]) -> int:
    """Return the number of steps that parameters have made; parameters without a step do not count.

    Raises GraphError where one has made more steps than another.
    """
    different = sorted(set(counts) - {0})
    if len(different) > 1:
        raise GraphError(
            locate(
                f"{type(optimizer).__name__}: parameters of one group have made {different[0]} and {different[-1]} "
                "steps, and a graph counts once for all; give those that are not trained in each step a group of their "
                "own"
            )
        )
    return different[0] if different else 0


def keep_sums(optimizer: Any, group: Mapping[str, Any], sums: Mapping[str, Any], updates: Mapping[int, int]) -> None:
    """Store the sums in an optimizer; `updates` counts the updates of each parameter, by id."""
    for i, param in enumerate(trainable_params(group)):
        if count := updates[id(param)]:
            state = optimizer.state[param]
            if optimizer.counts:
                state["step"] = param.new_tensor(_steps_of(optimizer, param) + count, dtype=np.float32)
            for slot, name in optimizer.slots_of(param).items():
                if slot in sums:
                    state[name] = param.new_tensor(sums[slot][i], dtype=sums[slot][i].dtype)
