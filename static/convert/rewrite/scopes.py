"""Which variables statements set and read, and which are read before they are set (upward exposed uses).

All of it on statements without jumps but `raise`: `jumps.lowered` has run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from static.convert.rewrite.nodes import COMPREHENSIONS, FUNCTIONS

Names = frozenset[str]
NONE: Names = frozenset()


def scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of one scope: not those inside functions and classes that it defines."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            todo += [*getattr(node, "decorator_list", []), *getattr(node, "bases", [])]
        else:
            todo += ast.iter_child_nodes(node)


def stored(nodes: Iterable[ast.AST]) -> Names:
    """The variables of this scope that statements set or delete."""
    inside = list(scope(nodes))
    return frozenset([name for node in inside for name in _set_by(node)]) - _bound(inside)


def _set_by(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [(alias.asname or alias.name).split(".")[0] for alias in names]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return []


def _bound(inside: Sequence[ast.AST]) -> Names:
    """The variables of comprehensions among the nodes of a scope, unless the scope has them too."""
    targets = {id(n): n.id for node in inside if isinstance(node, COMPREHENSIONS) for n in _targets(node)}
    if not targets:
        return NONE
    outside = {n.id for n in inside if isinstance(n, ast.Name) and _is_set(n) and id(n) not in targets}
    return frozenset(targets.values()) - outside


def bound_by(node: ast.AST) -> set[str]:
    """The variables that a comprehension, or the parameters of a function, bind."""
    if isinstance(node, COMPREHENSIONS):
        return {name.id for name in _targets(node)}
    return {arg.arg for arg in ast.walk(node) if isinstance(arg, ast.arg)}


def _targets(node: ast.AST) -> Iterator[ast.Name]:
    for generator in node.generators:  # type: ignore[attr-defined]
        for name in ast.walk(generator.target):
            if isinstance(name, ast.Name) and _is_set(name):
                yield name


def _is_set(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def loaded(node: ast.AST) -> Names:
    """The variables that a statement or expression reads, functions inside it included."""
    names = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store):
            names.add(n.id)
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            names.add(n.target.id)
    return frozenset(names)


class Uses(NamedTuple):
    """The variables that statements may read before they set them, and those that they set on every path."""

    reads: Names = NONE
    sure: Names = NONE

    def then(self, after: Uses) -> Uses:
        """Those of statements followed by others."""
        return Uses(self.reads | (after.reads - self.sure), self.sure | after.sure)

    def before(self, live: Names) -> Names:
        """The variables that are read later at the start, where these are at the end."""
        return (live - self.sure) | self.reads


def uses(statements: Sequence[ast.stmt]) -> Uses:
    """Those of statements that run one after the other."""
    total = Uses()
    for statement in statements:
        cached = vars(statement).get("uses")  # asked for at each level of the blocks around
        if cached is None:
            cached = vars(statement)["uses"] = _uses(statement)
        total = total.then(cached)
    return total


def _uses(statement: ast.stmt) -> Uses:
    match statement:
        case ast.If(test=test, body=body, orelse=orelse):
            then, other = uses(body), uses(orelse)
            return Uses(loaded(test)).then(Uses(then.reads | other.reads, then.sure & other.sure))
        case ast.While(test=test, body=body):
            return Uses(loaded(test) | uses(body).reads)
        case ast.For(target=target, iter=iterable, body=body):
            inside = Uses(sure=stored([target])).then(uses(body)).reads
            return Uses(loaded(iterable) | inside | loaded(target) | loaded(until(statement)))
        case ast.With(items=items, body=body):
            entered = frozenset().union(*(loaded(item) for item in items))
            return Uses(entered, stored(items)).then(uses(body))
        case ast.FunctionDef(name=name):
            return Uses(loaded(statement), frozenset([name]))
        case ast.Assign(targets=targets):
            return Uses(loaded(statement), stored(targets))
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target, value=ast.expr()):
            return Uses(loaded(statement), stored([target]))
    return Uses(loaded(statement))  # of a try, and of what sets nothing


def set_until(loop: ast.AST, test: ast.expr | None) -> None:
    """Let a for loop end when a test fails, besides its items."""
    vars(loop)["until"] = test


def until(loop: ast.For) -> ast.expr:
    """The test that lowering has given a for loop, asked before each round: it goes on while this holds."""
    return getattr(loop, "until", None) or ast.Constant(True)
