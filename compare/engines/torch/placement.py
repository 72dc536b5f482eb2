"""The places of a function where `torch.compile` may be applied: its model, repeated blocks, its optimizer.

A place is a word that PyTorch's users know: `model` for the outermost modules, the name of a class for each module of
it, `optimizer` for the `step` of each optimizer. The whole function is compiled where no place is named. A compiled
module runs by `Module._compiled_call_impl`, as after `module.compile()`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from compare.engines.process import patch_namespace
from compare.engines.reach import ReachedCode, outermost
from compare.engines.step import Context, Function, inside
from compare.errors import InputsError, UnsupportedError

MODEL, OPTIMIZER = "model", "optimizer"
MARK = "_dynamo_dynamic_indices"
"""The attribute of a tensor with marked axes."""
LEAST = 2
"""The number of modules of one class from which on they are blocks that repeat."""

Compile = Callable[[Function], Function]


def places_of(function: Function, calls: Sequence[tuple[Any, ...]] = ()) -> dict[str, list[Any]]:
    """Return the places of a function, each with its modules or optimizers: the model, its blocks, the optimizer."""
    import torch

    values = [*ReachedCode(function).values, *(value for call in calls[:1] for value in call)]
    modules = outermost([value for value in values if isinstance(value, torch.nn.Module)])
    places: dict[str, list[Any]] = {MODEL: modules, **repeated_blocks(modules)}
    optimizers = {id(value): value for value in values if isinstance(value, torch.optim.Optimizer)}
    places[OPTIMIZER] = list(optimizers.values())
    return {name: holders for name, holders in places.items() if holders}


def repeated_blocks(modules: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the blocks that repeat in models, by the name of their class, the outermost first.

    A block has modules of its own, so that a layer is none. Of a class whose modules stand in each other, the outermost
    are meant.
    """
    blocks: dict[type, list[Any]] = {}
    for module in modules:
        for inner in list(module.modules())[1:]:
            if next(inner.children(), None) is not None and not _is_container(inner):
                blocks.setdefault(type(inner), []).append(inner)
    apart = {kind: outermost(list({id(block): block for block in each}.values())) for kind, each in blocks.items()}
    return {kind.__name__: each for kind, each in apart.items() if len(each) >= LEAST}


def _is_container(module: Any) -> bool:
    import torch

    return type(module) in (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)


def check_places(where: Any) -> tuple[str, ...]:
    """Return the places that a word names. Raises InputsError unless it is a name, or several."""
    names = (where,) if isinstance(where, str) else tuple(where) if isinstance(where, (list, tuple)) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputsError(f"where={where!r}: a place is {MODEL!r}, {OPTIMIZER!r} or the name of a class of modules")
    return names


@dataclass
class PartialCompile:
    """What a mode changes besides compiling: where it compiles, axes of arguments, rates of optimizers.

    `where` names places, and is empty for the whole function. `marks` has axes that vary by parameter. With `rates` the
    rates of optimizers are tensors. `of` makes the function that runs; the rest is changed inside `within` alone.
    """

    where: Sequence[str]
    marks: Mapping[str, Any]
    rates: bool
    calls: Sequence[tuple[Any, ...]]
    compile_: Compile
    _contexts: list[Context] = field(default_factory=list)

    def of(self, function: Function) -> Function:
        """Return the function as it runs.

        Raises UnsupportedError for a place that it does not reach, and InputsError for a parameter that it lacks.
        """
        if self.rates:
            self._contexts.append(tensor_rates(function, self.calls))
        if self.where:
            self._contexts.append(compiled_at(self.where, function, self.calls, self.compile_))
        return marking(self.marks, function, function if self.where else self.compile_(function))

    @contextmanager
    def within(self) -> Iterator[None]:
        """A context in which the function's modules, optimizers and rates are changed."""
        with inside(*self._contexts)():
            yield


def compiled_at(
    where: Sequence[str], function: Function, calls: Sequence[tuple[Any, ...]], compile_: Compile
) -> Context:
    """Return the context in which these places of a function run compiled.

    Raises UnsupportedError for a place that the function does not reach.
    """
    places = places_of(function, calls)
    named = _named_blocks(places.get(MODEL, ()))
    patches: list[tuple[dict[str, Any], Mapping[str, Any]]] = []
    for name in where:
        holders = places.get(name) or named.get(name)
        if holders is None:
            there = ", ".join(f"{place} ({len(each)})" for place, each in places.items()) or "none"
            raise UnsupportedError(f"where={name!r}: the step reaches no such place; its places: {there}")
        key, method = ("step", "step") if name == OPTIMIZER else ("_compiled_call_impl", "_call_impl")
        patches += [(vars(holder), {key: compile_(getattr(holder, method))}) for holder in holders]
    return inside(*(partial(patch_namespace, space, values) for space, values in patches))


def _named_blocks(modules: Sequence[Any]) -> dict[str, list[Any]]:
    """Return all modules inside of models by the name of their class: a user may name a layer too."""
    named: dict[str, list[Any]] = {}
    for module in modules:
        for inner in module.modules():
            named.setdefault(type(inner).__name__, []).append(inner)
    return {name: outermost(list({id(each): each for each in inners}.values())) for name, inners in named.items()}


# What a mode changes in arguments and optimizers ---------------------------------------------------------------------


def marking(marks: Mapping[str, Any], function: Function, run: Function) -> Function:
    """Return a function that marks axes of arguments as dynamic before it runs; `marks` has axes by parameter.

    Raises InputsError for a parameter that the function lacks.
    """
    if not marks:
        return run
    import torch

    parameters = list(inspect.signature(function).parameters)
    if unknown := [name for name in marks if name not in parameters]:
        raise InputsError(f"mark_dynamic: the step has no parameter {unknown[0]!r}; it has {', '.join(parameters)}")
    axes = [(parameters.index(name), at if isinstance(at, (list, tuple)) else [at]) for name, at in marks.items()]

    @functools.wraps(run)
    def with_marks(*args: Any) -> Any:
        for place, each in axes:
            if not hasattr(args[place], MARK):
                torch._dynamo.mark_dynamic(args[place], list(each))
        return run(*args)

    return with_marks


def tensor_rates(function: Function, calls: Sequence[tuple[Any, ...]]) -> Context:
    """Return the context in which the learning rates of a function's optimizers are tensors, which compiled code reads.

    A schedule may change them; the optimizers have numbers again at the end.
    """
    import torch

    groups = [group for optimizer in places_of(function, calls).get(OPTIMIZER, ()) for group in optimizer.param_groups]
    rates = [torch.tensor(float(group["lr"])) for group in groups]

    @contextmanager
    def within() -> Iterator[None]:
        for group, rate in zip(groups, rates, strict=True):
            rate.fill_(float(group["lr"]))
            group["lr"] = rate
        try:
            yield
        finally:
            for group in groups:
                group["lr"] = float(group["lr"])

    return within
