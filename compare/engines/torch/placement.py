"""The places of a function where `torch.compile` may be applied: its model, repeated blocks, its optimizer.

A place is a word that PyTorch's users know: `model` for the outermost modules, the name of a class for each module of
it, `optimizer` for the `step` of each optimizer. The whole function is compiled where no place is named. A compiled
module runs by `Module._compiled_call_impl`, as after `module.compile()`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from compare.engines.process import patch_namespace
from compare.engines.reach import ReachedCode, outermost
from compare.engines.step import Context, Function, inside
from compare.errors import InputsError, UnsupportedError

MODEL, OPTIMIZER = "model", "optimizer"
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


def compiled_at(
    where: Sequence[str], function: Function, calls: Sequence[tuple[Any, ...]], compile_: Compile
) -> Context:
    """Return the context in which these places of a function run compiled.

    Raises UnsupportedError for a place that the function does not reach.
    """
    patches: list[tuple[dict[str, Any], Mapping[str, Any]]] = []
    for name in where:
        key, method = ("step", "step") if name == OPTIMIZER else ("_compiled_call_impl", "_call_impl")
        patches += [
            (vars(holder), {key: compile_(_traceable(getattr(holder, method)))})
            for holder in holders_at(name, function, calls)
        ]
    return inside(*(partial(patch_namespace, space, values) for space, values in patches))


def holders_at(name: str, function: Function, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the modules or optimizers of a place. Raises UnsupportedError for one that the function does not reach."""
    places = places_of(function, calls)
    holders = places.get(name) or _named_blocks(places.get(MODEL, ())).get(name)
    if holders is None:
        there = ", ".join(f"{place} ({len(each)})" for place, each in places.items()) or "none"
        raise UnsupportedError(f"where={name!r}: the step reaches no such place; its places: {there}")
    return holders


def _traceable(method: Function) -> Function:
    """Return a method in a frame of its own: Dynamo compiles no frame of a file of PyTorch's, such as `Sequential`'s.

    `torch.compile(module)` does the same.
    """
    forward = getattr(getattr(method, "__self__", None), "forward", None)
    if forward is None or not forward.__module__.startswith("torch.nn."):
        return method

    @functools.wraps(method)
    def run(*args: Any, **options: Any) -> Any:
        return method(*args, **options)

    return run


def _named_blocks(modules: Sequence[Any]) -> dict[str, list[Any]]:
    """Return all modules inside of models by the name of their class: a user may name a layer too."""
    named: dict[str, list[Any]] = {}
    for module in modules:
        for inner in module.modules():
            named.setdefault(type(inner).__name__, []).append(inner)
    return {name: outermost(list({id(each): each for each in inners}.values())) for name, inners in named.items()}
