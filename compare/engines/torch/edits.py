"""What a mode changes besides compiling: where it compiles, and a function's statements, arguments and modules.

Each is a keyword of a word, and stands for an edit that a user would make by hand. It holds inside a context, and is
undone at its end: nothing of the user's file is written.

A place where `torch.compile` may be applied is a word that PyTorch's users know: `model` for the outermost modules, the
name of a class for each module of it, `optimizer` for the `step` of each optimizer. The whole function is compiled
where no place is named. A compiled module runs by `Module._compiled_call_impl`, as after `module.compile()`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from compare.engines.process import patch_namespace
from compare.engines.reach import ReachedCode, outermost
from compare.engines.step import Context, Function, inside
from compare.errors import InputsError, UnsupportedError

Calls = Sequence[tuple[Any, ...]]
Compile = Callable[[Function], Function]
MARK = "_dynamo_dynamic_indices"
"""The attribute of a tensor with marked axes; it stays, as it does where a user marks an argument once."""
MODEL, OPTIMIZER = "model", "optimizer"
LEAST = 2
"""The number of modules of one class from which on they are blocks that repeat."""
WHERE, MARKS, NUMBERS, PADS = "where", "mark_dynamic", "tensor_numbers", "pad"
RATES, CHECKPOINT, WITHOUT = "tensor_lr", "checkpoint", "without"


@dataclass
class StepEdits:
    """The edits of one mode: `options` has the values of its keywords, and `compile_` compiles a function.

    `of` makes the function that runs; what else is changed is so inside `within` alone.
    """

    options: Mapping[str, Any]
    calls: Calls
    compile_: Compile
    _contexts: list[Context] = field(default_factory=list)

    def of(self, function: Function) -> Function:
        """Return the function as it runs.

        Raises UnsupportedError for a place or a line that it does not reach, and InputsError for a missing parameter.
        """
        asked = self.options
        self._contexts += [
            make(asked[keyword], function, self.calls) for keyword, make in CHANGES.items() if asked.get(keyword)
        ]
        run = function
        if WHERE in asked:
            self._contexts.append(compiled_at(check_places(asked[WHERE]), function, self.calls, self.compile_))
        else:
            run = self.compile_(function)
        run = padding(asked.get(PADS, {}), function, with_tensors(asked.get(NUMBERS, ()), function, run))
        return marking(asked.get(MARKS, {}), function, run)

    @contextmanager
    def within(self) -> Iterator[None]:
        """A context in which the function, its modules and its optimizers are changed."""
        with inside(*self._contexts)():
            yield


# Places ---------------------------------------------------------------------------------------------------------------


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


# Arguments ------------------------------------------------------------------------------------------------------------


def _indices(keyword: str, names: Sequence[str], function: Function) -> list[int]:
    """Return the indices of parameters. Raises InputsError for one that the function lacks."""
    parameters = list(inspect.signature(function).parameters)
    if unknown := [name for name in names if name not in parameters]:
        raise InputsError(f"{keyword}: the step has no parameter {unknown[0]!r}; it has {', '.join(parameters)}")
    return [parameters.index(name) for name in names]


def marking(marks: Mapping[str, Any], function: Function, run: Function) -> Function:
    """Return a function that marks axes of arguments as dynamic before it runs; `marks` has axes by parameter.

    Raises InputsError for a parameter that the function lacks.
    """
    if not marks:
        return run
    import torch

    each = [list(at) if isinstance(at, (list, tuple)) else [at] for at in marks.values()]
    axes = list(zip(_indices(MARKS, list(marks), function), each, strict=True))

    @functools.wraps(run)
    def with_marks(*args: Any) -> Any:
        for place, varying in axes:
            if not hasattr(args[place], MARK):
                torch._dynamo.mark_dynamic(args[place], varying)
        return run(*args)

    return with_marks


@contextmanager
def restore_marks(calls: Calls) -> Iterator[None]:
    """A context after which the tensors among arguments have the attributes that they had before, and no more.

    A mark is several of them, and compiled code is guarded by each.
    """
    tensors = {id(arg): arg for call in calls for arg in call if hasattr(arg, "untyped_storage")}
    before = {each: {*vars(tensor)} for each, tensor in tensors.items()}
    try:
        yield
    finally:
        for each, tensor in tensors.items():
            for name in {*vars(tensor)} - before[each]:
                delattr(tensor, name)


def with_tensors(names: Sequence[str], function: Function, run: Function) -> Function:
    """Return a function that runs with these arguments, which are numbers, as tensors of no axes.

    Raises InputsError for a parameter that the function lacks.
    """
    if not names:
        return run
    import torch

    places = {*_indices(NUMBERS, names, function)}

    @functools.wraps(run)
    def run_on_tensors(*args: Any) -> Any:
        return run(*(torch.tensor(arg) if place in places else arg for place, arg in enumerate(args)))

    return run_on_tensors


def padding(pads: Mapping[str, Mapping[int, int]], function: Function, run: Function) -> Function:
    """Return a function that pads axes of arguments with zeros; `pads` has the size of each axis by parameter.

    A larger argument stays as it is. Raises InputsError for a parameter that the function lacks.
    """
    if not pads:
        return run
    import torch

    sizes = list(zip(_indices(PADS, list(pads), function), pads.values(), strict=True))

    def pad_value(value: Any, least: Mapping[int, int]) -> Any:
        widths = [0] * (2 * value.dim())
        for axis, size in least.items():
            widths[-1 - 2 * axis] = max(0, size - value.shape[axis])
        return torch.nn.functional.pad(value, widths) if any(widths) else value

    @functools.wraps(run)
    def with_padding(*args: Any) -> Any:
        arguments = list(args)
        for place, least in sizes:
            arguments[place] = pad_value(arguments[place], least)
        return run(*arguments)

    return with_padding


# Optimizers and modules -----------------------------------------------------------------------------------------------


def tensor_rates(_: Any, function: Function, calls: Calls) -> Context:
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


def checkpoint_modules(where: Any, function: Function, calls: Calls) -> Context:
    """Return the context in which the modules of places keep no activations, and compute them again in backward.

    Raises UnsupportedError for a place that the function does not reach.
    """
    from torch.utils.checkpoint import checkpoint

    modules = [module for name in check_places(where) for module in holders_at(name, function, calls)]
    again = [(vars(module), partial(checkpoint, module.forward, use_reentrant=False)) for module in modules]
    return inside(*(partial(patch_namespace, space, {"forward": forward}) for space, forward in again))


# Statements -----------------------------------------------------------------------------------------------------------


def without_lines(lines: Any, function: Function, calls: Calls) -> Context:
    """Return the context in which the functions that a step reaches lack the statements at lines, as `step.py:31`.

    Such a statement is a call whose result nothing takes. Raises UnsupportedError for a line that has none.
    """
    asked = (lines,) if isinstance(lines, str) else tuple(lines)
    edits: dict[int, tuple[FunctionType, list[int]]] = {}
    for line in asked:
        file, _, number = str(line).rpartition(":")
        inner = [each for each in ReachedCode(function).functions if _holds(each.__code__, file, int(number or 0))]
        if not inner:
            raise UnsupportedError(f"{WITHOUT}={line!r}: the step reaches no function with this line")
        for each in inner:
            edits.setdefault(id(each), (each, []))[1].append(int(number))
    changed = [(each, _code_without(each.__code__, numbers)) for each, numbers in edits.values()]
    return inside(*(partial(_with_code, each, code) for each, code in changed))


def _holds(code: CodeType, file: str, line: int) -> bool:
    return Path(code.co_filename).name == file and line in {number for *_, number in code.co_lines()}


class _Removal(ast.NodeTransformer):
    """Puts `pass` in the place of calls whose result nothing takes, at some lines; `removed` are the lines codes."""

    def __init__(self, lines: Sequence[int]) -> None:
        self.lines, self.removed = lines, set[int]()

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Return `pass` for such a call, unless a name is bound in it."""
        here = {line for line in self.lines if node.lineno <= line <= (node.end_lineno or node.lineno)}
        binds = any(isinstance(part, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for part in ast.walk(node))
        if not here or binds or not isinstance(node.value, ast.Call):
            return node
        self.removed |= here
        return ast.copy_location(ast.Pass(), node)


def _code_without(code: CodeType, lines: Sequence[int]) -> CodeType:
    """Return the code of a function without the statements at lines. Raises UnsupportedError where it has none."""
    removal = _Removal(lines)
    tree = removal.visit(ast.parse("".join(linecache.getlines(code.co_filename))))
    left = [line for line in lines if line not in removal.removed]
    module = compile(tree, code.co_filename, "exec", dont_inherit=True)
    codes = [each for each in _inner_codes(module) if _identity(each) == _identity(code)]
    if left or len(codes) != 1 or codes[0].co_freevars != code.co_freevars:
        at = f"{Path(code.co_filename).name}:{(left or lines)[0]}"
        raise UnsupportedError(f"{WITHOUT}={at!r}: no call whose result nothing takes is there by itself")
    return codes[0]


def _identity(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _inner_codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner_codes(constant)


@contextmanager
def _with_code(function: FunctionType, code: CodeType) -> Iterator[None]:
    before = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = before


CHANGES: Mapping[str, Callable[[Any, Function, Calls], Context]] = {
    RATES: tensor_rates,
    CHECKPOINT: checkpoint_modules,
    WITHOUT: without_lines,
}
"""What changes a function, its modules or its optimizers, by keyword: each returns the context of the change."""
KEYWORDS = (WHERE, MARKS, NUMBERS, PADS, *CHANGES)
