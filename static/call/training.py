"""The trace of a training step: its gradients, and the updates of its optimizers (`static.call.optimizers`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphs import dispatch, ops, tree
from graphs.blocks import Block, undo_after
from graphs.builder import Builder
from graphs.errors import ControlFlowError, locate
from graphs.ir import Node
from graphs.op import is_ours
from graphs.reverse import pullback
from static.call.optimizers import Numbers, WrittenOptimizer, common_count, is_ruled, steps_of
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

    `tensors` are the tensors by name. `state` has their values, and what each optimizer keeps. `rates` are learning
    rates that a run gets as numbers, by optimizer and group. `numbers` are those of optimizers of the user's own, by
    optimizer; `after` leaves there what the step has changed too.
    """

    def __init__(
        self, builder: Builder, tensors: Mapping[str, Any], optimizers: Optimizers, state: State, args: Sequence[Any],
        rates: Sequence[Sequence[Any]] = (), numbers: Sequence[Numbers] = (),
    ) -> None:  # fmt: skip
        super().__init__(builder, state["tensors"], args)
        self._start = len(builder.nodes)
        self._tensors, self._optimizers, self._rates = tensors, optimizers, rates
        self._by_id = {id(tensor): name for name, tensor in tensors.items()}
        self._before = {name: symbol.node for name, symbol in self.symbols.items()}
        self._wanted = [name for name, tensor in tensors.items() if tensor.requires_grad]
        self._gradients = dict[str, Any]()
        self.sums: list[Any] = [
            list(each) if is_ruled(of) else each for of, each in zip(optimizers, state["sums"], strict=True)
        ]
        self._numbers = list(numbers) or [[set[str]() for _ in each.param_groups] for each in optimizers]
        self._written: list[tuple[int, WrittenOptimizer]] = []
        self.updates = dict.fromkeys(tensors, 0)
        self._again: list[_Checkpoint] = []
        self._absent: list[Any] = []

    @contextmanager
    def running(self, places: Sequence[Place]) -> Iterator[tuple[Any, ...]]:
        """Enter `traced_tensors`, and check and restore what a training step needs: its optimizers and gradients.

        Raises ControlFlowError for an optimizer of the user's own that changes how one of ours steps.
        """
        own = [(i, each) for i, each in enumerate(self._optimizers) if not is_ours(type(each))]
        if ruled := [type(optimizer).__name__ for _, optimizer in own if is_ruled(optimizer)]:
            raise ControlFlowError(
                f"{ruled[0]} changes how an optimizer of ours steps, and a graph has the rule of ours alone; derive it "
                "from torch.optim.Optimizer, or run it in mode dynamic"
            )
        before = [(tensor, tensor.grad) for tensor in self._tensors.values() if tensor.requires_grad]
        members = [
            (group["params"], k, self._by_id[id(param)])
            for _, optimizer in own
            for group in optimizer.param_groups
            for k, param in enumerate(group["params"])
            if id(param) in self._by_id
        ]
        self._written = [(i, WrittenOptimizer(each, self._numbers[i], self)) for i, each in own]
        try:
            self._absent = [_absent_gradient(tensor) for tensor, _ in before]
            for i, written in self._written:
                written.begin(self.sums[i])
            with traced_tensors(self, [*places, *members]) as args:
                yield args
        finally:
            for _, written in self._written:
                written.end()
            for tensor, gradient in before:
                tensor.grad = gradient

    def after(self, places: Mapping[str, tuple[Any, Any]]) -> State:
        """Return the state at the end: the value in the place of each tensor, and what optimizers keep.

        `arguments` are those that the step has changed in place. Call it inside `running`.
        """
        now = {name: at(*place) for name, place in places.items()}
        self.check_views()
        for i, written in self._written:
            self.sums[i] = written.kept()
        tensors = {name: now.get(name, symbol) for name, symbol in self.symbols.items()}
        return {"tensors": tensors, "sums": self.sums, "arguments": self.changed_args()}

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

        def backward(gradient: Any = None, create_graph: bool = False, **_: Any) -> None:
            variables = [self.symbols[name] for name in self._wanted]
            reaching = pull_cotangents([symbol], [gradient], variables, self._start)
            for name, cotangent in zip(self._wanted, reaching, strict=True):
                if cotangent is not None:
                    before = self._gradients.get(name)
                    new = cotangent if create_graph else ops.stop_gradient(cotangent)
                    self._gradients[name] = new if before is None else ops.add(before, new)
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
                self._gradients.pop(self._member(param), None)

    def _member(self, param: Any) -> str:
        """Return the name of a parameter of an optimizer, "" for one that the step does not know."""
        return self._by_id.get(id(param)) or self.name(param) or ""

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
            members = [(self._member(param), param) for param in group["params"]]
            trained = [(name, self._tensors.get(name, param)) for name, param in members]
            params = [param for _, param in trained if param.requires_grad]
            names = [name for name, param in trained if param.requires_grad]
            if len({*map(id, params)}) < len(params):
                raise ControlFlowError(locate(f"{name}: a parameter is twice in a group; give each once"))
            having = [i for i, name in enumerate(names) if name in self._gradients]
            if not all(any(params[i].grad is absent for absent in self._absent) for i in having):
                rule = "the gradient of a parameter is set or removed by another way than the module has it"
                raise ControlFlowError(locate(f"{rule}; take it from module.parameters(), or run it in mode dynamic"))
            counts = {steps_of(optimizer, params[i]) + self.updates[names[i]] for i in having}
            common_count(optimizer, {count + 1 for count in counts})
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
