"""A training step as PyTorch's users write it, with `backward()` and `optimizer.step()`, as one graph.

The step runs once, on symbols that stand for the tensors it trains (`static.trace.step`). Backward and the updates of
the optimizers append to the same graph, so that the compiled step is a function of a state: `step(state, *args) ->
(value, state)`. `TrainingStep` calls it, and lets modules and optimizers hold the new state, as the plain step does.

`training` has the trace of the step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CellType, FunctionType
from typing import Any

import numpy as np

from graphs import capture, tree
from graphs.errors import ArgumentError, ControlFlowError, locate
from static.call.jit import Jitted, jit
from static.call.optimizers import Numbers, is_written, keep_state, keep_sums, kept_by
from static.call.training import Optimizers, State, TrainingTrace
from static.trace.step import Place
from static.trace.symbol import Symbol, callee
from static.trace.tracing import current


class TrainingStep:
    """A training step whose calls run one graph: forward, backward and the updates.

    A call returns the step's result, as arrays. It leaves parameters, buffers, what optimizers keep and the arguments
    as the step leaves them; gradients are not part of the state and stay as they were. `jitted` is the compiled
    function, with its `stats`.
    """

    def __init__(self, step: Callable[..., Any], tensors: Mapping[str, Any], optimizers: Optimizers,
                 places: Sequence[Place], **options: Any) -> None:  # fmt: skip
        self._step, self._tensors, self._optimizers, self._places = step, tensors, optimizers, places
        self._place_of = {name: (space, key) for space, key, name in places}
        self._numbers = [
            [{"lr"} & set(group) if is_written(optimizer) else set() for group in optimizer.param_groups]
            for optimizer in optimizers
        ]
        functools.update_wrapper(self, step)
        self.jitted: Jitted = jit(self._whole, **options)

    def __call__(self, *args: Any) -> Any:
        """Run the step and return its result. Raises ControlFlowError where it needs a value, and the errors of ops."""
        hits, value, state = self._run(args)
        updates = dict(zip(map(id, self._tensors.values()), hits.tolist(), strict=True))
        for name, tensor in self._tensors.items():
            np.copyto(tensor.detach().numpy(), state["tensors"][name])
        leaves = tree.leaves(args)
        for number, array in state["arguments"].items():
            np.copyto(leaves[number].detach().numpy() if hasattr(leaves[number], "detach") else leaves[number], array)
        for optimizer, kept in zip(self._optimizers, state["sums"], strict=True):
            if is_written(optimizer):
                keep_state(optimizer, kept, self._tensors)
                continue
            for group, sums in zip(optimizer.param_groups, kept, strict=True):
                keep_sums(optimizer, group, sums, updates)
        return value

    def _run(self, args: Sequence[Any]) -> Any:
        """Run the graph; it is traced again where the step has changed an option that was taken as a constant."""
        try:
            return self.jitted(_Options(self._optimizers, self._numbers), self._rates, self.state, *args)
        except _OptionChangeError:
            return self._run(args)

    @property
    def state(self) -> State:
        """The state that the step changes: `tensors` by name, and the `sums` or the state of each optimizer."""
        tensors = {name: tensor.detach().numpy() for name, tensor in self._tensors.items()}
        names = {id(tensor): name for name, tensor in self._tensors.items()}
        pairs = zip(self._optimizers, self._numbers, strict=True)
        return {"tensors": tensors, "sums": [kept_by(optimizer, names, numbers) for optimizer, numbers in pairs]}

    def function(self, state: State, *args: Any) -> tuple[Any, State]:
        """Compute `step(state, *args) -> (value, state)` in a trace, with the present learning rates as constants."""
        _, value, after = self._traced((), state, args, ())
        return value, after

    def _whole(self, _: Any, rates: Any, state: State, *args: Any) -> Any:
        """Run the step for the compiled graph: learning rates are inputs, and update counts are an output."""
        weak = [[Symbol(rate.builder, rate.node, weak=True) for rate in groups] for groups in rates]
        before = self._rates
        numbers = [[set(names) for names in groups] for groups in self._numbers]
        result = self._traced(weak, state, args, self._numbers)
        if numbers != self._numbers:
            raise _OptionChangeError
        if self._rates != before:
            raise ControlFlowError(
                "the step changes a learning rate, and its Python code runs once; call scheduler.step() behind the step"
            )
        return result

    @property
    def _rates(self) -> list[list[np.float64]]:
        return [
            [np.float64(group.get("lr", 0)) for group in (() if is_written(each) else each.param_groups)]
            for each in self._optimizers
        ]

    def _traced(self, rates: Any, state: State, args: Sequence[Any], numbers: Sequence[Numbers]) -> Any:
        builder = current()
        assert builder is not None  # noqa: S101  (the function of a trace)
        trace = TrainingTrace(builder, self._tensors, self._optimizers, state, args, rates, numbers)
        with trace.running(self._places) as call:
            value = tree.tree_map(_without_history, callee(self._step)(*call))
            after = trace.after(self._place_of)
        return np.array([*trace.updates.values()]), () if value is None else value, after


def _without_history(leaf: Any) -> Any:
    return leaf.detach() if hasattr(leaf, "detach") else leaf


class _OptionChangeError(ControlFlowError):
    """The step has changed an option of an optimizer, which is an input of the next trace."""


class _Options:
    """The options of optimizers, except the learning rate and those that change; the graph is specialised to them."""

    def __init__(self, optimizers: Optimizers, numbers: Sequence[Numbers]) -> None:
        self._key = tuple(
            tuple(sorted((name, repr(value)) for name, value in group.items() if name not in ("params", "lr", *some)))
            for optimizer, each in zip(optimizers, numbers, strict=True)
            for group, some in zip(optimizer.param_groups, each, strict=True)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Options) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def trace_step(step: Callable[..., Any], *holders: Any, **options: Any) -> TrainingStep:
    """Return a training step that runs as one graph; `holders` are the modules, tensors and optimizers it changes.

    `step(*args)` is written as for PyTorch. Options are those of `static.jit`. Raises ArgumentError for a holder of
    another kind.
    """
    tensors, optimizers, places = dict[int, tuple[str, Any]](), list[Any](), list[Place]()
    for number, holder in enumerate(holders):
        for path, tensor in _tensors_of(holder):
            tensors.setdefault(id(tensor), (".".join(filter(None, (f"{number}", path))), tensor))
        if hasattr(holder, "param_groups"):
            optimizers.append(holder)
        for _, inner in holder.named_modules() if hasattr(holder, "named_modules") else ():
            space = vars(inner)
            places += [(space, key, tensors[id(value)][0]) for key, value in space.items() if id(value) in tensors]
    for space in _spaces(step):
        entries = enumerate(space) if isinstance(space, list) else list(space.items())
        places += [(space, key, tensors[id(value)][0]) for key, value in entries if id(value) in tensors]
    return TrainingStep(step, dict(tensors.values()), optimizers, places, **options)


class _Variable(dict[str, Any]):
    """An outer variable of a function, as a dict of one entry; writing the entry sets the variable."""

    def __init__(self, name: str, cell: CellType) -> None:
        super().__init__({name: cell.cell_contents})
        self._cell = cell

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._cell.cell_contents = value


def _spaces(step: Any) -> Iterator[Any]:
    """Yield the places where a step's code finds tensors itself: outer variables, globals, lists and dicts in them."""
    function = getattr(step, "__func__", step)
    if not isinstance(function, FunctionType):
        return
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    outer = [_Variable(name, cell) for name, cell in cells if cell != CellType()]  # one that is set
    names = {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}
    yield from outer
    yield function.__globals__
    values = [*names.values(), *(value for variable in outer for value in variable.values())]
    yield from {id(value): value for value in values if type(value) in (list, dict)}.values()


def _tensors_of(holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors that a module, a tensor or an optimizer holds, each with its name there."""
    if hasattr(holder, "named_modules"):
        yield from (*holder.named_parameters(), *holder.named_buffers())
    elif isinstance(holder, tuple(capture.tensors)):
        yield "", holder
    elif hasattr(holder, "param_groups"):
        params = [param for group in holder.param_groups for param in group["params"]]
        yield from ((f"{i}", param) for i, param in enumerate(params))
    else:
        raise ArgumentError(
            locate(f"trace_step takes modules, tensors and optimizers, no {type(holder).__name__}; leave it out")
        )
