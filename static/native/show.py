"""Kernels to read: the recipe, the loop IR and the machine's instructions of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from static.native import link
from static.native.ir import Access, Constant, Fold, LaneOp, Load, Loop, LoopKernel, Statement, Store, Value
from static.native.target import Target, host


class ShownKernel:
    """A kernel of an executable, and how often a call runs it: in a `while_loop`, how often two turns do."""

    def __init__(self, recipe: Any, count: int, target: Target) -> None:
        self.recipe, self.count, self.target = recipe, count, target

    @cached_property
    def ir(self) -> str:
        """The loop IR, a node a line."""
        return format_kernel(self.recipe.lower(self.target))

    @cached_property
    def llvm(self) -> str:
        """The LLVM IR."""
        return link.module({self.recipe: "kernel"}, self.target)

    @cached_property
    def assembly(self) -> str:
        """The instructions of the target."""
        return link.assembly(self.llvm, self.target)

    def __repr__(self) -> str:
        return f"<kernel {type(self.recipe).__name__.lower()}, called {self.count} times>"

    def __str__(self) -> str:
        return f"{self!r}\n{self.ir}"


def of(recipes: Sequence[Any]) -> tuple[ShownKernel, ...]:
    """The kernels of these recipes, each once."""
    return tuple(ShownKernel(recipe, count, host()) for recipe, count in Counter(recipes).items())


def format_kernel(kernel: LoopKernel) -> str:
    """A kernel as text."""
    writer = _Text()
    parameters = ", ".join(f"p{p.number}: {p.type}" for p in kernel.parameters)
    return "\n".join([f"kernel({parameters})", *writer.lines(kernel.body, 1)])


class _Text:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}

    def name(self, value: Value) -> str:
        if isinstance(value, Constant):
            return str(value.number)
        return self.names.setdefault(value, f"v{len(self.names)}")

    def lines(self, body: Sequence[Statement], depth: int) -> Iterator[str]:
        for node in body:
            if isinstance(node, Loop):
                yield from self.loop(node, depth)
            else:
                yield "  " * depth + self.line(node)

    def line(self, node: Load | LaneOp | Fold | Store) -> str:
        if isinstance(node, Store):
            return f"store {self.access(node.access)} = {self.name(node.value)}"
        return f"{self.name(node)}: {node.type} = {self.computed(node)}"

    def computed(self, node: Load | LaneOp | Fold) -> str:
        if isinstance(node, Load):
            return f"load {self.access(node.access)}"
        if isinstance(node, Fold):
            return f"fold {node.name}({self.name(node.vector)})"
        return f"{node.name}({', '.join(map(self.name, node.args))})"

    def access(self, access: Access) -> str:
        terms = [f"{self.name(counter)} * {stride}" for counter, stride in access.terms]
        terms += [str(access.offset)] if access.offset or not terms else []
        lanes = f", every {access.step}" if access.step != 1 else ""
        return f"p{access.base.number}[{' + '.join(terms)}{lanes}, {access.active} lanes]"

    def loop(self, node: Loop, depth: int) -> Iterator[str]:
        pairs = zip(node.carried, node.inits, strict=True)
        carried = ", ".join(f"{self.name(value)} = {self.name(init)}" for value, init in pairs)
        head = f"loop {self.name(node.counter)} from {node.start} to {node.stop} by {node.step}"
        results = ", ".join(map(self.name, node.results))
        yield "  " * depth + (f"{results} = {head} carrying {carried}" if carried else head)
        yield from self.lines(node.body, depth + 1)
        if carried:
            yield "  " * (depth + 1) + f"carry {', '.join(map(self.name, node.gives))}"
